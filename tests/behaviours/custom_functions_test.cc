// Custom autograd functions, and compilers of one's own
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

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
    const at::NoGradGuard no_grad;
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

/// Its backward does `act` to what its forward kept, then hands the gradient on.
template <class Act>
struct Acting : torch::autograd::Function<Acting<Act>> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& kept) {
    ctx->saved_data["kept"] = kept;
    return x * 2;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    Act()(ctx->saved_data["kept"].toTensor(), grads[0]);
    return {grads[0] * 3, at::Tensor()};
  }
};

struct Transposes {
  void operator()(const at::Tensor& kept, const at::Tensor& /*grad*/) const { kept.t_(); }
};
struct Zeroes {
  void operator()(const at::Tensor& kept, const at::Tensor& /*grad*/) const { kept.zero_(); }
};
struct ScalesGradient {
  void operator()(const at::Tensor& /*kept*/, const at::Tensor& grad) const { grad.mul_(2); }
};
struct AddsShape {
  void operator()(const at::Tensor& kept, const at::Tensor& grad) const {
    kept.add_(at::zeros_like(grad).sum() + 1);
  }
};

template <class Act>
Tensors acting(const Tensors& in) {
  return {Acting<Act>::apply(in[0], in[1])};
}

// A backward that changes the sizes or strides of an input is not compiled.
TEST(Behaviours, B093_BackwardChangesAnInputsStrides) {
  expect_refused(acting<Transposes>, start_of({Kind::Leaf, Kind::Plain}, {2, 3}),
                 "does more to a tensor that it did not make");
}

// A backward may write its incoming gradient: the caller's tangent is written.
TEST(Behaviours, B094_BackwardWritesItsGradient) {
  expect_as_eager(
      acting<ScalesGradient>, start_of({Kind::Leaf, Kind::Plain}, {3}), [](const Called& called) {
        const at::Tensor tangent = at::ones({3});
        const auto& y = called.results[0];
        called.seen.note_values("gradient",
                                torch::autograd::grad({y}, {called.arguments[0]}, {tangent})[0]);
        called.seen.note_tensors("after", {{"tangent", tangent}});
      });
}

// A backward that zeroes an input which forward kept does so when it runs, not before.
TEST(Behaviours, B095_BackwardZeroesAnInput) {
  expect_as_eager(acting<Zeroes>, start_of({Kind::Leaf, Kind::Plain}, {3}),
                  [](const Called& called) {
                    const auto& kept = called.arguments[1];
                    called.seen.note_values("before", kept);
                    called.results[0].sum().backward();
                    called.seen.note_values("after", kept);
                    EXPECT_EQ(kept.count_nonzero().item<int64_t>(), 0);
                  });
}

// With `create_graph` such a backward gives right gradients; differentiating these is an error.
TEST(Behaviours, B096_BackwardWritesWithCreateGraph) {
  const auto compiled =
      compile([](const at::Tensor& x, const at::Tensor& y) { return Acting<Zeroes>::apply(x, y); },
              {.policy = Policy::Refuse});
  const at::Tensor x = leaf({3});
  const at::Tensor y = compiled(x, plain({3}));
  const at::Tensor g = torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
  EXPECT_TRUE(at::equal(g.detach(), at::full({3}, 3.0)));
  EXPECT_THROW(torch::autograd::grad({g.sum()}, {x}), c10::Error);
}

// A buffer may be written by what depends on the tangent's shape alone.
TEST(Behaviours, B097_BackwardWritesABuffer) {
  expect_as_eager(acting<AddsShape>, start_of({Kind::Leaf, Kind::Plain}, {3}));
}

// A buffer that forward wrote may be written again by backward.
TEST(Behaviours, B098_ForwardAndBackwardWriteABuffer) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[1].mul_(2);
        return {Acting<AddsShape>::apply(in[0], in[1])};
      },
      start_of({Kind::Leaf, Kind::Plain}, {3}));
}

}  // namespace
}  // namespace foregrad::testing
