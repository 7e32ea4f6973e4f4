// Operators of all sorts
#include <gmock/gmock.h>

#include "behaviours/callers.h"
#include "behaviours/graph_text.h"
#include "foregrad/aot.h"
#include "graph/printer.h"

namespace foregrad::testing {
namespace {

using ::testing::HasSubstr;

// Two results, each with its gradients.
TEST(Behaviours, B129_TwoResults) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto [values, indices] = in[0].max(1);
        return {values * 2, in[0].gather(1, indices.unsqueeze(1)).sin()};
      },
      start_of(Kind::Leaf, {3, 4}));
}

// Layer norm is eager's bit for bit.
TEST(Behaviours, B130_LayerNorm) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors { return {at::layer_norm(in[0], {8}, in[1][0], in[1][1])}; },
      start_of({Kind::Leaf, Kind::Leaf}, {4, 8}));
}

// `to_dense` of a tensor that is dense, with its options.
TEST(Behaviours, B131_ToDenseOfADenseTensor) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return {in[0].to_dense(at::kDouble), in[0].to_dense(std::nullopt, true) * 2};
      },
      start_of(Kind::Leaf, {3}));
}

// A linear layer in complex numbers, and the absolute value of what it gives.
TEST(Behaviours, B132_ComplexLinearThenAbs) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors { return {at::linear(in[0], in[1], in[2]).abs()}; },
      [] {
        const auto numbers = [](at::IntArrayRef sizes) {
          return at::randn(sizes, at::kComplexFloat).requires_grad_();
        };
        return Start{.arguments = {numbers({2, 3}), numbers({4, 3}), numbers({4})}};
      });
}

// A tensor that is made of C++ numbers inside is a constant of the graph.
TEST(Behaviours, B133_ATensorMadeOfNumbers) {
  const Program program = [](const Tensors& in) -> Tensors {
    const at::Tensor mean = at::tensor(std::vector<double>{0.485, 0.456, 0.406}, at::kFloat);
    const at::Tensor lengths = at::empty({3}, at::kLong);
    auto places = lengths.accessor<int64_t, 1>();
    for (int64_t i = 0; i < 3; ++i) places[i] = i;
    return {(in[0] - mean) * lengths, mean};
  };
  expect_as_eager(program, start_of(Kind::Leaf, {3}));
  const auto graph = make_graph(program, Tensors{at::ones({3})});
  EXPECT_THAT(print_graph(graph), HasSubstr("foregrad::constant.int(values=[0, 1, 2], size=[3]"));
}

// A tensor that the function captures may be written, as an argument may.
TEST(Behaviours, B134_ACapturedTensorIsWritten) {
  const at::Tensor count = at::zeros({});
  const uint32_t version = count._version();
  const auto compiled = compile([count](const at::Tensor& x) { return x * count.add_(1); },
                                {.tensors = {count}, .policy = Policy::Refuse});
  for (int i = 1; i < 4; ++i) {
    EXPECT_TRUE(at::equal(compiled(at::ones({2})), at::full({2}, static_cast<float>(i))));
    EXPECT_EQ(count._version(), version + i);
  }
}

// An `out` of the wrong dtype is eager's error.
TEST(Behaviours, B135_AnOutOfTheWrongDtype) {
  const auto program = [](const at::Tensor& x) {
    at::Tensor out = at::empty({2}, at::kLong);
    return at::add_out(out, x, x);
  };
  std::string eager;
  try {
    program(at::ones({2}));
  } catch (const c10::Error& error) {
    eager = error.what_without_backtrace();
  }
  ASSERT_THAT(eager, HasSubstr("result type Float can't be cast"));
  try {
    compile(program, {.policy = Policy::Refuse})(at::ones({2}));
    ADD_FAILURE() << "expected an error";
  } catch (const c10::Error& error) {
    EXPECT_EQ(error.what_without_backtrace(), eager);
  }
}

// Every value of a graph has a type, those that come of writes in place too.
TEST(Behaviours, B136_EveryValueHasAType) {
  const Graph graph = make_graph(
      [](const at::Tensor& x) {
        at::Tensor y = x.clone();
        y.t().mul_(2);
        y[0].copy_(x[1]).relu_();
        return y.sum(0).cumsum(0);
      },
      at::ones({3, 4}));
  ASSERT_GT(graph.nodes.size(), 5U);
  for (const Node& node : graph.nodes) {
    for_each_definition(node, [&](ValueId value) {
      const TensorType& type = graph.type(value);
      EXPECT_EQ(type.sizes.size(), type.strides.size());
      EXPECT_GT(type.numel(), 0);
      EXPECT_EQ(type.dtype, at::kFloat);
    });
  }
}

}  // namespace
}  // namespace foregrad::testing
