#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "capture/recorder.h"
#include "graph/refusal.h"

namespace foregrad {
namespace {

using Tensors = std::vector<at::Tensor>;

TEST(Recorder, KeepsCompositesWholeAndNumbersValuesByIdentity) {
  const auto result = record({.arguments = {at::ones({2, 3})},
                              .run = [](const Tensors& in) -> Tensors {
                                auto y = at::reshape(in[0], {6});
                                y.add_(1);
                                return {y};
                              },
                              .on_capture = {}});
  ASSERT_EQ(result.recording.ops.size(), 2u);
  EXPECT_EQ(operator_text(result.recording.ops[0].op), "aten::reshape");
  EXPECT_EQ(std::get<ValueId>(result.recording.ops[0].results[0]),
            std::get<ValueId>(result.recording.ops[1].results[0]));
  EXPECT_TRUE(result.recording.inputs[0].seen.data_mutated);
}

TEST(Recorder, TellsOfEachCapturedTensorOnce) {
  const auto captured = at::ones({2});
  std::vector<std::string> first_uses;
  record(
      {.arguments = {at::ones({2})},
       .run = [&](const Tensors& in) -> Tensors { return {in[0] * captured + captured}; },
       .on_capture = [&](const at::Tensor&, const std::string& op) { first_uses.push_back(op); }});
  EXPECT_EQ(first_uses, std::vector<std::string>{"aten::mul.Tensor"});
}

TEST(Recorder, RefusesHooksOnLeavesSparseTensorsAndNestedTraces) {
  const auto x = at::ones({2}).requires_grad_();
  auto refuse = [&](const std::function<Tensors(const Tensors&)>& run, const at::Tensor& argument) {
    EXPECT_THROW(record({.arguments = {argument}, .run = run, .on_capture = {}}), Refusal);
  };
  refuse(
      [](const Tensors& in) -> Tensors {
        in[0].register_hook([](const at::Tensor& grad) { return grad * 2; });
        return {in[0] * 2};
      },
      x);
  refuse([](const Tensors& in) { return in; }, at::eye(2).to_sparse());
  refuse(
      [](const Tensors& in) -> Tensors {
        record(
            {.arguments = {}, .run = [](const Tensors&) { return Tensors(); }, .on_capture = {}});
        return in;
      },
      x);
  EXPECT_FALSE(is_tracing());
}

TEST(Recorder, ASeedThatIsPutBackAfterADrawIsRefused) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const auto before = generator.get_state();
  const auto run = [&](const Tensors& in) -> Tensors {
    at::manual_seed(3);
    auto y = at::bernoulli(in[0]);
    generator.set_state(before);
    return {y};
  };
  EXPECT_THROW(record({.arguments = {at::ones({2})}, .run = run, .on_capture = {}}), Refusal);
  EXPECT_TRUE(at::equal(generator.get_state(), before));
}

TEST(Recorder, DataThatIsNotThereIsNotReadByAnyPointer) {
  const auto x = at::ones({2});
  void* pointer = nullptr;
  const auto of_argument = [&](const Tensors& in) { return pointer = in[0].data_ptr(), in; };
  EXPECT_THROW(record({.arguments = {x}, .run = of_argument, .on_capture = {}}), c10::Error);
  const auto of_result = [&](const Tensors& in) -> Tensors {
    const auto y = in[0] * 2;
    pointer = y.data_ptr();
    return {y};
  };
  EXPECT_THROW(record({.arguments = {x}, .run = of_result, .on_capture = {}}), c10::Error);
  // libtorch makes tensors of numbers below the front key.
  const auto of_new = [&](const Tensors& in) -> Tensors {
    const c10::impl::ExcludeDispatchKeyGuard below(
        c10::DispatchKeySet({c10::DispatchKey::DeferredInit, c10::DispatchKey::Functionalize}));
    pointer = at::empty({2}).data_ptr();
    return in;
  };
  EXPECT_THROW(record({.arguments = {x}, .run = of_new, .on_capture = {}}), c10::Error);
}

TEST(Recorder, ATensorMadeOfDataIsNoCapturedOne) {
  const auto data = at::ones({2});  // as if of an array
  const auto run = [&](const Tensors& in) -> Tensors { return {in[0] + at::lift_fresh(data)}; };
  EXPECT_THROW(record({.arguments = {at::ones({2})}, .run = run, .on_capture = {}}), Refusal);
}

TEST(Recorder, BackwardInsideIsRefusedAndLeavesTheGradsAlone) {
  const auto w = at::ones({2}).requires_grad_();
  for (const auto& grad : {at::Tensor(), at::full({2}, 7.0)}) {
    w.mutable_grad() = grad;
    const auto run = [&](const Tensors& in) -> Tensors {
      (in[0] * w).sum().backward();
      return {in[0] + 1};
    };
    try {
      record({.arguments = {at::ones({2})}, .run = run, .on_capture = {}});
    } catch (const Refusal&) {
    }
    ASSERT_EQ(w.grad().defined(), grad.defined());
    if (grad.defined()) {
      EXPECT_TRUE(at::equal(w.grad(), at::full({2}, 7.0)));
    }
  }
}

TEST(Recorder, AGradientWithRespectToACapturedParameterIsRecorded) {
  const auto w = at::ones({2}).requires_grad_();
  const auto result =
      record({.arguments = {at::ones({2})},
              .run = [&](const Tensors& in) -> Tensors {
                return torch::autograd::grad({(in[0] * w * w).sum()}, {w}, {}, std::nullopt, true,
                                             /*allow_unused=*/true);
              },
              .on_capture = {}});
  EXPECT_TRUE(result.recording.outputs[0].seen.defined);
  EXPECT_TRUE(result.recording.outputs[0].seen.requires_grad);
}

}  // namespace
}  // namespace foregrad
