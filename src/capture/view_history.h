// What autograd knows of a view whose sizes were changed in place.
//
// Where libtorch views by strides it takes the view from its base by the sizes and strides that the
// view has when it is asked. A functional wrapper is viewed by calling the view operators again,
// and autograd does not see that `squeeze_` or `transpose_` is one of them: gradients through what
// is written to the view later would be wrong.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace foregrad {

/// To be called after an operator with its results on top of the stack: lets autograd take views
/// that it changed in place from their bases by their new sizes and strides.
void follow_changed_views(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

}  // namespace foregrad
