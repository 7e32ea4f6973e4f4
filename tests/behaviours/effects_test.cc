// Operators of a user's library that do more than give their results
#include <gmock/gmock.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <mutex>

#include "behaviours/callers.h"
#include "foregrad/operators.h"

namespace foregrad::testing {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<double> told;  // what the operators were called with, in order

at::Tensor tell(const at::Tensor& x, double mark) {
  const at::AutoDispatchBelowADInplaceOrView below;
  told.push_back(mark + x.sum().item<double>());
  return x.clone();
}
at::Tensor tell_type(const at::Tensor& x, double) { return at::empty_like(x); }
void tell_only(const at::Tensor& x, double mark) { tell(x, mark); }
void tell_nothing(const at::Tensor&, double) {}

TORCH_LIBRARY(behaviours_effects, library) {
  library.def("tell(Tensor x, float mark) -> Tensor", torch::dispatch(at::kCPU, &tell));
  library.impl("tell", torch::dispatch(at::kMeta, &tell_type));
  library.def("tell_only(Tensor x, float mark) -> ()", torch::dispatch(at::kCPU, &tell_only));
  library.impl("tell_only", torch::dispatch(at::kMeta, &tell_nothing));
  library.def("untyped(Tensor x, float mark) -> Tensor", torch::dispatch(at::kCPU, &tell));
}

template <class Result>
Result call(const char* name, const at::Tensor& x, double mark) {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const char* op : {"tell", "tell_only", "untyped"})
      declare_effect(std::string("behaviours_effects::") + op);
  });
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Result(const at::Tensor&, double)>()
      .call(x, mark);
}

at::Tensor telling(const at::Tensor& x, double mark) {
  const at::AutoDispatchBelowAutograd below;  // it has no formula
  return call<at::Tensor>("behaviours_effects::tell", x, mark);
}

struct Telling : torch::autograd::Function<Telling> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, double mark) {
    ctx->saved_data["mark"] = mark;
    return call<at::Tensor>("behaviours_effects::tell", x, mark);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const double mark = ctx->saved_data["mark"].toDouble();
    return {call<at::Tensor>("behaviours_effects::tell", grads[0], -mark), at::Tensor()};
  }
};

/// What was told in each of three calls, eager and compiled, is the same, and so is all else.
void expect_told_as_eager(const Program& program, const std::vector<double>& expected) {
  expect_as_eager(program, start_of(Kind::Leaf, {2}));
  const auto compiled = compile(program, {.policy = Policy::Refuse});
  std::vector<Program> both{program, [&](const Tensors& in) { return compiled(in); }};
  for (int i = 0; i < 3; ++i) {
    for (const Program& function : both) {
      told.clear();
      const at::Tensor x = at::ones({2}).requires_grad_();
      const Tensors results = function({x});
      for (const at::Tensor& result : results)
        if (result.requires_grad()) result.sum().backward();
      EXPECT_EQ(told, expected);
    }
  }
}

// It runs once a call, in order, and not while the function is traced.
TEST(Behaviours, B151_RunsOncePerCallInOrder) {
  const Program program = [](const Tensors& in) -> Tensors {
    telling(in[0], 10);
    const at::Tensor y = telling(in[0].detach() * 3, 20);
    call<void>("behaviours_effects::tell_only", y, 30);
    telling(in[0], 10);
    return {y};
  };
  expect_told_as_eager(program, {12, 26, 36, 12});
}

// Its result is one of several.
TEST(Behaviours, B152_AmongSeveralResults) {
  expect_told_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor x = in[0].detach();
        return {x * 2, telling(x, 1), x.sin()};
      },
      {3});
}

// In a training step.
TEST(Behaviours, B153_InTraining) {
  expect_told_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor y = in[0] * 2;
        telling(y.detach(), 5);
        return {(y * y).sum()};
      },
      {9});
}

// In a backward.
TEST(Behaviours, B154_InBackward) {
  expect_told_as_eager(
      [](const Tensors& in) -> Tensors { return {Telling::apply(in[0], 1.0) * 2}; }, {3, 3});
}

// Several of them in a backward, in autograd's order.
TEST(Behaviours, B155_SeveralInBackward) {
  expect_told_as_eager(
      [](const Tensors& in) -> Tensors {
        return {Telling::apply(Telling::apply(in[0], 1.0) * 3, 2.0) * 2};
      },
      {3, 8, 2, 11});
}

// One without a Meta kernel is refused: its type can't be known without running it.
TEST(Behaviours, B151_WithoutATypeItIsRefused) {
  expect_refused(
      [](const Tensors& in) -> Tensors {
        const at::AutoDispatchBelowAutograd below;
        return {call<at::Tensor>("behaviours_effects::untyped", in[0], 1)};
      },
      start_of(Kind::Plain, {2}), "its kernel must not run while the function is traced");
}

}  // namespace
}  // namespace foregrad::testing
