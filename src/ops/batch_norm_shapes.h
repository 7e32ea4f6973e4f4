// Shape rules of batch norm and its backward.
#pragma once

#include "ops/shape_rules.h"

namespace foregrad {

/// `aten::native_batch_norm` over contiguous batches [N, C, ...] of one float type.
std::optional<std::vector<at::Tensor>> batch_norm_shapes(c10::ArrayRef<c10::IValue> args);

/// `aten::_native_batch_norm_legit_functional`: the same, then the new running statistics.
std::optional<std::vector<at::Tensor>> batch_norm_functional_shapes(
    c10::ArrayRef<c10::IValue> args);

/// `aten::native_batch_norm_backward`: gradients of input, weight and bias, as the mask says.
std::optional<std::vector<at::Tensor>> batch_norm_backward_shapes(c10::ArrayRef<c10::IValue> args);

}  // namespace foregrad
