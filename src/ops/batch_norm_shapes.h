// Shape rules of batch norm and its backward.
#pragma once

#include <span>

#include "ops/shape_rules.h"

namespace foregrad {

/// `aten::native_batch_norm` over batches [N, C, …] in any layout, of one floating dtype or of half
/// precision with float weights.
Results batch_norm_shapes(Arguments args);

/// `aten::_native_batch_norm_legit_functional`: the same, then the new running statistics.
Results batch_norm_functional_shapes(Arguments args);

/// `aten::native_batch_norm_backward`: gradients of input, weight and bias, as the mask says.
Results batch_norm_backward_shapes(Arguments args);

std::span<const ShapeRow> batch_norm_rules();

}  // namespace foregrad
