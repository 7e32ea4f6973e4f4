#include "ops/shape_rules.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <string_view>

namespace foregrad {

namespace {

using Results = std::optional<std::vector<at::Tensor>>;

/// One result of the argument's own type. Strides follow the argument's where it is dense, as a
/// pointwise kernel's do.
Results like_first_argument(c10::ArrayRef<c10::IValue> args) {
  return std::vector<at::Tensor>{at::empty_like(args[0].toTensor())};
}

/// The size of a convolution's output along one spatial dimension.
int64_t convolved_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                       int64_t dilation) {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

/// `convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
/// groups)` over contiguous float batches [N, C, spatial...]; every other layout, and anything that
/// may be invalid, is left to the real kernel.
Results convolution(c10::ArrayRef<c10::IValue> args) {
  const at::Tensor& input = args[0].toTensor();
  const at::Tensor& weight = args[1].toTensor();
  const auto stride = args[3].toIntVector();
  const auto padding = args[4].toIntVector();
  const auto dilation = args[5].toIntVector();
  const bool transposed = args[6].toBool();
  const int64_t groups = args[8].toInt();
  const auto spatial = static_cast<size_t>(input.dim() - 2);
  const bool is_plain = !transposed && groups > 0 && (input.dim() == 4 || input.dim() == 5) &&
                        weight.dim() == input.dim() && input.scalar_type() == at::kFloat &&
                        weight.scalar_type() == at::kFloat && input.is_contiguous() &&
                        weight.is_contiguous() && input.size(0) > 0 && weight.size(0) > 0 &&
                        weight.size(0) % groups == 0 && input.size(1) == weight.size(1) * groups &&
                        stride.size() == spatial && padding.size() == spatial &&
                        dilation.size() == spatial;
  if (!is_plain) return std::nullopt;
  if (args[2].isTensor() && args[2].toTensor().defined()) {
    const at::Tensor& bias = args[2].toTensor();
    if (bias.dim() != 1 || bias.size(0) != weight.size(0) || bias.scalar_type() != at::kFloat) {
      return std::nullopt;
    }
  }
  c10::DimVector sizes{input.size(0), weight.size(0)};
  for (size_t d = 0; d < spatial; ++d) {
    const auto dim = static_cast<int64_t>(d) + 2;
    if (stride[d] <= 0 || dilation[d] <= 0 || padding[d] < 0) return std::nullopt;
    const int64_t reach = dilation[d] * (weight.size(dim) - 1) + 1;
    if (weight.size(dim) <= 0 || input.size(dim) + 2 * padding[d] < reach) return std::nullopt;
    sizes.push_back(
        convolved_size(input.size(dim), weight.size(dim), stride[d], padding[d], dilation[d]));
  }
  return std::vector<at::Tensor>{at::empty(sizes, input.options())};
}

/// For composite kernels that choose a backend by the device, which the meta device has not.
Results leave_to_real_kernel(c10::ArrayRef<c10::IValue> /*args*/) { return std::nullopt; }

struct Row {
  std::string_view name;
  std::string_view overload;
  ShapeRule rule;
};

constexpr Row kRows[] = {
    {"aten::relu", "", like_first_argument},
    {"aten::convolution", "", convolution},
    {"aten::convolution_backward", "", leave_to_real_kernel},
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
