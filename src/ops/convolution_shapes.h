// Shape rules of convolution and its backward.
#pragma once

#include "ops/shape_rules.h"

namespace foregrad {

/// `aten::convolution` over contiguous float batches [N, C, spatial...]; every other layout is left
/// to the real kernel.
std::optional<std::vector<at::Tensor>> convolution_shapes(c10::ArrayRef<c10::IValue> args);

/// `aten::convolution_backward` of such a convolution: contiguous gradients of input, weight and
/// bias, as the mask says.
std::optional<std::vector<at::Tensor>> convolution_backward_shapes(c10::ArrayRef<c10::IValue> args);

}  // namespace foregrad
