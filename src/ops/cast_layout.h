// Where a Meta kernel misses a layout: the CPU casts arguments before it chooses strides.
#pragma once

#include <ATen/core/stack.h>

namespace foregrad {

/// Whether a kernel of the CPU may have cast an argument of another dtype than the results', and
/// the cast lies otherwise than the argument: gaps are closed, expanded dimensions written out. On
/// meta tensors a TensorIterator casts nothing, and takes the strides of the argument itself.
bool cast_may_change_layout(const torch::jit::Stack& arguments, const torch::jit::Stack& results);

}  // namespace foregrad
