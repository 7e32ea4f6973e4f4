#include "ops/shape_rules.h"

#include <ATen/ops/empty_like.h>

#include <string_view>

#include "ops/batch_norm_shapes.h"
#include "ops/convolution_shapes.h"

namespace foregrad {

namespace {

using Results = std::optional<std::vector<at::Tensor>>;

/// One result of the argument's own type. Strides follow the argument's where it is dense, as a
/// pointwise kernel's do.
Results like_first_argument(c10::ArrayRef<c10::IValue> args) {
  return std::vector<at::Tensor>{at::empty_like(args[0].toTensor())};
}

struct Row {
  std::string_view name;
  std::string_view overload;
  ShapeRule rule;
};

constexpr Row kRows[] = {
    {"aten::relu", "", like_first_argument},
    {"aten::convolution", "", convolution_shapes},
    {"aten::convolution_backward", "", convolution_backward_shapes},
    {"aten::native_batch_norm", "", batch_norm_shapes},
    {"aten::_native_batch_norm_legit_functional", "", batch_norm_functional_shapes},
    {"aten::native_batch_norm_backward", "", batch_norm_backward_shapes},
};

}  // namespace

ShapeRule find_shape_rule(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  for (const Row& row : kRows) {
    if (row.name == name.name && row.overload == name.overload_name) return row.rule;
  }
  return nullptr;
}

}  // namespace foregrad
