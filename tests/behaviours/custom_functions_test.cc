// Custom autograd functions, and compilers of one's own
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "foregrad/aot.h"
#include "graph/interpreter.h"
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A call without gradients is compiled by the inference compiler, one with gradients by the forward
// compiler.
TEST(Behaviours, B011_InferenceHasACompilerOfItsOwn) {
  int forward = 0;
  int inference = 0;
  const auto counting = [](int& count) -> GraphCompiler {
    return [&count](const Graph& graph) -> Executable {
      ++count;
      return [graph](const Tensors& inputs) { return interpret(graph, inputs); };
    };
  };
  const auto compiled =
      aot_function([](const at::Tensor& x) { return x.exp(); },
                   {.forward = counting(forward), .inference = counting(inference)});
  const at::Tensor x = leaf({3});
  {
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(at::equal(compiled(x), x.exp()));
  }
  EXPECT_EQ(std::pair(forward, inference), std::pair(0, 1));
  EXPECT_TRUE(at::equal(compiled(x), x.exp()));
  EXPECT_EQ(std::pair(forward, inference), std::pair(1, 1));
}

struct Threefold : torch::autograd::Function<Threefold> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x) {
    ctx->save_for_backward({x});
    return x * x;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {grads[0] * ctx->get_saved_variables()[0] * 3};
  }
};

// A custom function keeps its own backward.
TEST(Behaviours, B099_ACustomFunctionKeepsItsBackward) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {Threefold::apply(in[0]) + 1}; },
                  start_of(Kind::Leaf, {3}));
}

struct Stashing : torch::autograd::Function<Stashing> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& y) {
    ctx->saved_data["y"] = y;
    return x * y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {grads[0] * ctx->saved_data["y"].toTensor(), at::Tensor()};
  }
};

// A tensor that its forward stashed outside of `save_for_backward` is read as it is when backward
// runs, without a check.
TEST(Behaviours, B100_AStashedTensorIsNotChecked) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor scale = in[1] * 2;
        at::Tensor y = Stashing::apply(in[0], scale);
        scale.add_(1);
        return {y};
      },
      start_of({Kind::Leaf, Kind::Plain}, {3}));
}

}  // namespace
}  // namespace foregrad::testing
