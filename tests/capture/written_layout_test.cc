#include "capture/written_layout.h"

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/stack.h>
#include <gtest/gtest.h>

#include "capture/keys.h"
#include "capture/stand_in.h"

namespace foregrad {
namespace {

c10::OperatorHandle find(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

at::Tensor stand_in(Tracer& tracer, const TensorType& type) {
  return make_stand_in(tracer, type, UserInput{}, false, true);
}

TEST(WrittenLayouts, KeepsStridesThatAFunctionalOperatorWouldNot) {
  Tracer tracer(Tracer::Keep::Nodes);
  Tracer::Scope tracing(tracer);
  TracingScope scope(TracingScope::Level::Replaying);
  const auto add = find("aten::add_", "Scalar");
  const std::vector<std::pair<c10::DimVector, c10::DimVector>> layouts{
      {{2, 3}, {7, 2}}, {{0, 3}, {1, 1}}, {{3, 0}, {1, 9}}};
  for (const auto& [sizes, strides] : layouts) {
    at::Tensor tensor = stand_in(tracer, {.sizes = sizes, .strides = strides});
    const at::Tensor view = tensor.t();
    torch::jit::Stack stack{tensor, at::Scalar(1), at::Scalar(1)};
    const WrittenLayouts layouts_before(add, stack);
    add.callBoxed(&stack);
    layouts_before.keep();
    EXPECT_EQ(tensor.strides(), at::IntArrayRef(strides));
    at::functionalization::impl::sync(view);
    EXPECT_EQ(view.stride(0), strides[1]);
  }
}

TEST(WrittenLayouts, LeavesWhatIsResizedAlone) {
  Tracer tracer(Tracer::Keep::Nodes);
  Tracer::Scope tracing(tracer);
  TracingScope scope(TracingScope::Level::Replaying);
  at::Tensor tensor = stand_in(tracer, {.sizes = {2, 3}, .strides = {1, 2}});
  const auto resize = find("aten::resize_", "");
  torch::jit::Stack stack{tensor, std::vector<int64_t>{1, 3}, c10::IValue()};
  const WrittenLayouts layouts(resize, stack);
  resize.callBoxed(&stack);
  layouts.keep();
  EXPECT_EQ(tensor.sizes(), (at::IntArrayRef{1, 3}));
  EXPECT_EQ(tensor.strides(), (at::IntArrayRef{3, 1}));
}

}  // namespace
}  // namespace foregrad
