// In-place operators whose effect the functional operator does not have.
//
// Functionalization takes `add` for `add_`. That is not the same where elements of what is written
// share memory with each other or with another argument, and not for random numbers, which are
// drawn in the order of the memory. There the memory variant (ops/memory_variant.h) is taken.
#pragma once

#include <ATen/core/Tensor.h>

namespace foregrad {

/// Whether elements of the tensor share memory with each other, or those of a view that it was
/// taken of: a write through it reaches several of them.
bool lies_in_overlap(const at::Tensor& wrapper);

/// Puts the kernels in place, once in a process.
void keep_in_place_writes();

}  // namespace foregrad
