// Shape rules of convolution and its backward.
#pragma once

#include <span>

#include "ops/shape_rules.h"

namespace foregrad {

/// `aten::convolution` over contiguous float batches [N, C, spatial...]; every other layout is left
/// to the real kernel.
Results convolution_shapes(Arguments args);

/// `aten::convolution_backward` of such a convolution: contiguous gradients of input, weight and
/// bias, as the mask says.
Results convolution_backward_shapes(Arguments args);

std::span<const ShapeRow> convolution_rules();

}  // namespace foregrad
