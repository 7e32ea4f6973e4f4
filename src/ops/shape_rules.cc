#include "ops/shape_rules.h"

#include <ATen/ops/clamp_min.h>

#include <string_view>

#include "ops/batch_norm_shapes.h"
#include "ops/convolution_shapes.h"

namespace foregrad {

namespace {

using Results = std::optional<std::vector<at::Tensor>>;

/// The kernel is that of `clamp_min`, but for truth values.
Results relu_shape(c10::ArrayRef<c10::IValue> args) {
  const at::Tensor& self = args[0].toTensor();
  if (self.scalar_type() == at::kBool) return std::nullopt;
  return std::vector<at::Tensor>{at::clamp_min(self, 0)};
}

struct Row {
  std::string_view name;
  std::string_view overload;
  ShapeRule rule;
};

constexpr Row kRows[] = {
    {"aten::relu", "", relu_shape},
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
