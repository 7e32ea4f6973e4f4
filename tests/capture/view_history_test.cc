#include "capture/view_history.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

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
  follow_changed_views(op, stack);
  const auto& info = torch::autograd::impl::get_view_autograd_meta(view)->get_backward_view();
  const at::Tensor again = info.view_fn()(base);
  EXPECT_EQ(again.sizes(), view.sizes());
  EXPECT_EQ(again.strides(), view.strides());
  EXPECT_EQ(again.storage_offset(), view.storage_offset());
}

TEST(ViewHistory, OfOtherTensorsStays) {
  at::Tensor x = at::ones({2, 3});
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::transpose_", "");
  torch::jit::Stack stack{x, int64_t{0}, int64_t{1}};
  op.callBoxed(&stack);
  EXPECT_NO_THROW(follow_changed_views(op, stack));
}

}  // namespace
}  // namespace foregrad
