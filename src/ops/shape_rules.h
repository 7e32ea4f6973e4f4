// Shape rules: the sizes, strides and dtypes of results, for operators whose Meta kernel libtorch
// lacks or gets wrong. Each family of operators has its rules in a file of its own.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <optional>
#include <span>
#include <vector>

namespace foregrad {

using Arguments = c10::ArrayRef<c10::IValue>;
using Results = std::optional<std::vector<at::Tensor>>;

/// Computes the results of an operator from its arguments, all tensors among them on the meta
/// device. Returns meta tensors, one for each return of the schema (undefined where the operator
/// leaves it undefined), or nothing if the rule does not cover these arguments: invalid ones above
/// all, whose error must come from the real kernel.
using ShapeRule = Results (*)(Arguments args);

struct ShapeRow {
  const char* name;  // with the namespace, for example `aten::flip`
  const char* overload;
  ShapeRule rule;
};

/// Covers no arguments: the Meta kernel is not to be trusted.
Results leave_to_real_kernel(Arguments args);

/// Returns all rows, family by family.
const std::vector<ShapeRow>& shape_rows();

/// Returns the operator's rule, null if it has none.
ShapeRule find_shape_rule(const c10::OperatorHandle& op);

}  // namespace foregrad
