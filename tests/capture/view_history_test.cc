#include "capture/view_history.h"

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/stack.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include "capture/keys.h"
#include "capture/stand_in.h"

namespace foregrad {
namespace {

TEST(ViewHistory, OfAViewThatWasTransposedInPlace) {
  Tracer tracer(Tracer::Keep::ShapesOnly);
  Tracer::Scope tracing(tracer);
  TracingScope scope(TracingScope::Level::Replaying);
  const at::Tensor base =
      make_stand_in(tracer, {.sizes = {2, 3, 4}, .strides = {12, 4, 1}}, UserInput{}, true, false);
  const at::Tensor view = base.select(0, 1);
  torch::jit::Stack stack{view, int64_t{0}, int64_t{1}};
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::transpose_", "");
  op.callBoxed(&stack);
  follow_views(stack);
  const auto& info = torch::autograd::impl::get_view_autograd_meta(view)->get_backward_view();
  const at::Tensor again = info.view_fn()(base);
  EXPECT_EQ(again.sizes(), view.sizes());
  EXPECT_EQ(again.strides(), view.strides());
  EXPECT_EQ(again.storage_offset(), view.storage_offset());
}

TEST(ViewHistory, OfAViewTakenOutsideOfAnother) {
  Tracer tracer(Tracer::Keep::ShapesOnly);
  Tracer::Scope tracing(tracer);
  TracingScope scope(TracingScope::Level::Replaying);
  const at::Tensor base =
      make_stand_in(tracer, {.sizes = {8}, .strides = {1}}, UserInput{}, true, false);
  torch::jit::Stack stack{base.slice(0, 0, 2).as_strided({3}, {1}, 4), std::vector<at::Tensor>{}};
  follow_views(stack);
  const auto* meta = torch::autograd::impl::get_view_autograd_meta(stack[0].toTensor());
  const at::Tensor again = meta->get_backward_view().view_fn()(base);
  EXPECT_EQ(again.storage_offset(), 4);
  EXPECT_EQ(again.grad_fn()->next_edge(0).function, base.grad_fn());
}

TEST(ViewHistory, OfAViewThatWasGivenAnotherStorage) {
  Tracer tracer(Tracer::Keep::ShapesOnly);
  Tracer::Scope tracing(tracer);
  TracingScope scope(TracingScope::Level::Replaying);
  const at::Tensor base =
      make_stand_in(tracer, {.sizes = {8}, .strides = {1}}, UserInput{}, true, false);
  const at::Tensor other =
      make_stand_in(tracer, {.sizes = {3}, .strides = {1}}, UserInput{}, false, true);
  at::Tensor view = base.select(0, 1);
  {
    const at::NoGradGuard no_grad;
    view.set_(other);
  }
  follow_views(std::vector<c10::IValue>{view});
  const auto* meta = torch::autograd::impl::get_view_autograd_meta(view);
  EXPECT_EQ(meta->get_backward_view().view_fn()(base).sizes(), other.sizes());
}

TEST(ViewHistory, OfOtherTensorsStays) {
  at::Tensor x = at::ones({2, 3});
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::transpose_", "");
  torch::jit::Stack stack{x, int64_t{0}, int64_t{1}};
  op.callBoxed(&stack);
  EXPECT_NO_THROW(follow_views(stack));
}

}  // namespace
}  // namespace foregrad
