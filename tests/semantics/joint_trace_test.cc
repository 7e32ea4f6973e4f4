// The joint graph of a recording against eager: outputs and gradients bit for bit, random streams
// included.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "graph/refusal.h"
#include "support/traced.h"
#include "support/values.h"

namespace foregrad::testing {
namespace {

void expect_identical(const at::Tensor& traced, const at::Tensor& eager, const std::string& what) {
  ASSERT_EQ(traced.defined(), eager.defined()) << what;
  if (!eager.defined()) return;
  EXPECT_EQ(traced.scalar_type(), eager.scalar_type()) << what;
  EXPECT_EQ(traced.sizes(), eager.sizes()) << what;
  EXPECT_EQ(traced.strides(), eager.strides()) << what;
  EXPECT_TRUE(at::allclose(traced, eager, 0, 0, /*equal_nan=*/true)) << what << "\n"
                                                                     << traced << "\n"
                                                                     << eager;
}

/// Every argument and every captured tensor that requires grad is compared. All outputs are new
/// tensors.
Traced expect_same_as_eager(const Function& fn, const Tensors& arguments) {
  at::manual_seed(7);
  Traced traced = trace(fn, arguments);
  at::manual_seed(7);
  Tensors eager = fn(arguments);
  Tensors differentiable;
  Tensors tangents;
  for (const auto& output : eager) {
    if (!output.requires_grad()) continue;
    differentiable.push_back(output);
    tangents.push_back(at::ones(output.sizes(), output.options().requires_grad(false)));
  }
  Tensors wanted;
  for (size_t i = 0; i < traced.recording.inputs.size(); ++i) {
    const auto& input = traced.recording.inputs[i];
    const at::Tensor& real = input.tensor.defined() ? input.tensor : arguments[i];
    if (real.requires_grad()) wanted.push_back(real);
  }
  if (!differentiable.empty()) {
    for (auto& grad :
         torch::autograd::grad(differentiable, wanted, tangents, std::nullopt, false, true)) {
      eager.push_back(grad);
    }
  }
  EXPECT_EQ(traced.results.size(), eager.size());
  for (size_t i = 0; i < std::min(eager.size(), traced.results.size()); ++i) {
    expect_identical(traced.results[i], eager[i].defined() ? eager[i].detach() : eager[i],
                     "output " + std::to_string(i));
  }
  return traced;
}

// `_weight_norm` is a composite over `_weight_norm_interface`.
TEST(JointTrace, WeightNorm) {
  for (const int64_t dim : {0, 1}) {
    expect_same_as_eager(
        [=](const Tensors& in) -> Tensors { return {at::_weight_norm(in[0], in[1], dim).sin()}; },
        {random_leaf({3, 4}), dim == 0 ? random_leaf({3, 1}) : random_leaf({1, 4})});
  }
}

TEST(JointTrace, Pointwise) {
  expect_same_as_eager(
      [](const Tensors& in) -> Tensors {
        return {at::sin(in[0]) * in[1] + at::sigmoid(in[0] - in[1]) * 2.5};
      },
      {random_leaf({3, 4}), random_leaf({4})});
}

TEST(JointTrace, EveryKindOfFactory) {
  expect_same_as_eager(
      [](const Tensors& in) -> Tensors {
        const auto& x = in[0];
        auto o = x.options().requires_grad(false);
        return {x * at::ones({3}, o) + at::zeros({3}, o) + at::full({3}, 2.0, o) +
                at::arange(3, o) + at::eye(3, o)[1] + at::linspace(0, 1, 3, o) +
                at::scalar_tensor(4.0, o) + at::zeros_like(x) + at::full_like(x, 3) +
                at::randn({3}, o) + at::rand({3}, o) + at::randint(0, 9, {3}, o) +
                at::randperm(3, o) + at::empty({3}, o).fill_(2) + at::tril_indices(2, 2).sum()};
      },
      {random_leaf({3})});
}

TEST(JointTrace, InPlaceOnIntermediatesAndTheirViews) {
  expect_same_as_eager(
      [](const Tensors& in) -> Tensors {
        auto y = in[0] * 2;
        y.select(0, 1).mul_(3);
        y.slice(1, 0, 2).copy_(in[1]);
        return {y.t().exp()};
      },
      {random_leaf({3, 4}), random_leaf({3, 2})});
}

TEST(JointTrace, ListsAndSeveralResults) {
  expect_same_as_eager(
      [](const Tensors& in) -> Tensors {
        auto parts = in[0].split(1, 1);
        auto joined = at::cat({parts[2], parts[0], in[1]}, 1);
        auto [values, indices] = joined.max(1);
        auto picked = in[0].index({at::arange(2), at::zeros({2}, at::kLong)});
        return {values, indices, picked * 2};
      },
      {random_leaf({2, 3}), random_leaf({2, 1})});
}

TEST(JointTrace, CapturedParametersBecomeInputs) {
  torch::nn::Linear linear(4, 2);
  auto traced =
      expect_same_as_eager([&](const Tensors& in) -> Tensors { return {at::tanh(linear(in[0]))}; },
                           {random_leaf({3, 4})});
  EXPECT_EQ(traced.recording.inputs.size(), 3u);
}

TEST(JointTrace, ConvolutionPoolingDropoutAndCrossEntropy) {
  at::manual_seed(1);
  torch::nn::Conv2d first(torch::nn::Conv2dOptions(1, 4, 3).padding(1));
  torch::nn::Linear last(4 * 4 * 4, 10);
  auto labels = at::randint(0, 10, {2}, at::kLong);
  expect_same_as_eager(
      [&](const Tensors& in) -> Tensors {
        auto x = at::max_pool2d(at::relu(first(in[0])), 2);
        x = at::dropout(x, 0.3, /*train=*/true);
        return {torch::nn::functional::cross_entropy(last(x.flatten(1)), labels)};
      },
      {at::randn({2, 1, 8, 8})});
}

TEST(JointTrace, AnUnusedInputHasAnUndefinedGradient) {
  auto traced = expect_same_as_eager([](const Tensors& in) -> Tensors { return {in[0] * 2}; },
                                     {random_leaf({3}), random_leaf({3})});
  EXPECT_FALSE(traced.results.back().defined());
}

TEST(JointTrace, AGradientTakenInsideTheFunction) {
  expect_same_as_eager(
      [](const Tensors& in) -> Tensors {
        auto y = at::pow(in[0], 3).sum();
        return torch::autograd::grad({y}, {in[0]}, {}, std::nullopt, /*create_graph=*/true);
      },
      {random_leaf({3})});
}

TEST(JointTrace, AGradientWithRespectToACapturedParameter) {
  auto w = random_leaf({3});
  expect_same_as_eager(
      [&](const Tensors& in) -> Tensors {
        return {
            torch::autograd::grad({(at::pow(in[0] * w, 3)).sum()}, {w}, {}, std::nullopt, true)[0] *
            in[0]};
      },
      {random_leaf({3})});
}

/// Those that are composite and have a kernel for the CPU: eager calls the kernel.
TEST(JointTrace, CompositesWithAKernelOfTheirOwn) {
  const auto twice = [](const auto& op) -> Function {
    return [op](const Tensors& in) -> Tensors { return {op(in[0]), op(in[1]), op(op(in[1]))}; };
  };
  for (const Function& fn :
       {twice([](const at::Tensor& x) { return at::silu(x); }),
        twice([](const at::Tensor& x) { return at::mish(x); }),
        twice([](const at::Tensor& x) { return at::channel_shuffle(x, 2); })}) {
    const Traced traced =
        expect_same_as_eager(fn, {random_leaf({2, 4, 3}), random_leaf({2, 4, 3})});
    for (const Node& node : traced.joint.graph.nodes)
      EXPECT_FALSE(node.op.schema().is_mutable()) << operator_text(node.op);
  }
}

TEST(JointTrace, AWrittenBufferComesBackAsAnOutput) {
  auto buffer = at::ones({3});
  auto traced = trace(
      [&](const Tensors& in) -> Tensors {
        {
          at::NoGradGuard no_grad;
          buffer.add_(in[0]);
        }
        return {in[0] * buffer};
      },
      {random_leaf({3})});
  EXPECT_TRUE(at::equal(buffer, at::ones({3}))) << "tracing must not write the caller's tensor";
  ASSERT_EQ(traced.meta.inputs.size(), 2u);
  EXPECT_TRUE(traced.meta.inputs[1].data_mutated);
  EXPECT_EQ(traced.meta.inputs[1].version_advance, 1u);
  ASSERT_TRUE(std::holds_alternative<MutatedInput>(traced.joint.graph.outputs[0].role));
}

TEST(JointTrace, DataDependentOperatorsAreRefused) {
  EXPECT_THROW(
      trace([](const Tensors& in) -> Tensors { return {in[0] * in[0].sum().item<float>()}; },
            {random_leaf({3})}),
      Refusal);
  EXPECT_THROW(
      trace([](const Tensors& in) -> Tensors { return {in[0].nonzero()}; }, {random_leaf({3})}),
      Refusal);
}

TEST(JointTrace, TheUsersOwnExceptionPassesAndLeavesNoState) {
  auto x = random_leaf({3});
  EXPECT_THROW(trace([](const Tensors&) -> Tensors { throw std::out_of_range("mine"); }, {x}),
               std::out_of_range);
  EXPECT_FALSE(is_tracing());
  EXPECT_TRUE(at::equal((x + 1).detach(), x.detach() + 1));
  expect_same_as_eager([](const Tensors& in) -> Tensors { return {in[0] + 1}; }, {x});
}

TEST(JointTrace, TwoTracesOfOneFunctionAreTheSameText) {
  Function fn = [](const Tensors& in) -> Tensors {
    return {at::softmax(in[0], 1) * at::rand_like(in[0])};
  };
  auto x = random_leaf({3, 4});
  auto first = trace(fn, {x});
  auto second = trace(fn, {x});
  EXPECT_EQ(first_difference(first.recording, second.recording), std::nullopt);
}

}  // namespace
}  // namespace foregrad::testing
