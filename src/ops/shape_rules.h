// Shape rules: the sizes, strides and dtypes of results, for operators whose Meta kernel libtorch
// lacks or gets wrong.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <optional>
#include <vector>

namespace foregrad {

/// Computes the results of an operator from its arguments, all tensors among them on the meta
/// device. Returns meta tensors, one for each return of the schema (undefined where the operator
/// leaves it undefined), or nothing if the rule does not cover these arguments: invalid ones above
/// all, whose error must come from the real kernel.
using ShapeRule = std::optional<std::vector<at::Tensor>> (*)(c10::ArrayRef<c10::IValue> args);

/// Returns the operator's rule, null if it has none.
ShapeRule find_shape_rule(const c10::OperatorHandle& op);

}  // namespace foregrad
