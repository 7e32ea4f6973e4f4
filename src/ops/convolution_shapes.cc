#include "ops/convolution_shapes.h"

#include <ATen/ops/empty.h>

#include "ops/result_types.h"

namespace foregrad {

namespace {

/// The size of a convolution's output along one spatial dimension.
int64_t convolved_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                       int64_t dilation) {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

}  // namespace

Results convolution_shapes(Arguments args) {
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
                        weight.scalar_type() == at::kFloat && is_made_contiguous(input) &&
                        is_made_contiguous(weight) && input.size(0) > 0 && weight.size(0) > 0 &&
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

Results convolution_backward_shapes(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& input = args[1].toTensor();
  const at::Tensor& weight = args[2].toTensor();
  // The forward call that this is the backward of, with the bias left out.
  const std::vector<c10::IValue> forward{input,   weight,  c10::IValue(), args[4], args[5],
                                         args[6], args[7], args[8],       args[9]};
  const auto output = convolution_shapes(forward);
  const bool is_plain = output && grad.sizes() == output->front().sizes() &&
                        is_made_contiguous(grad) && grad.scalar_type() == at::kFloat;
  if (!is_plain) return std::nullopt;
  const auto mask = args[10].toBoolList();
  // Some kernels give the weight's gradient with the bias's, wanted or not.
  if (mask[2] && !mask[1]) return std::nullopt;
  const auto given = [](bool wanted, c10::IntArrayRef sizes, const at::Tensor& like) {
    return wanted ? at::empty(sizes, like.options()) : at::Tensor();
  };
  return std::vector<at::Tensor>{given(mask[0], input.sizes(), input),
                                 given(mask[1], weight.sizes(), weight),
                                 given(mask[2], {weight.size(0)}, weight)};
}

namespace {

constexpr ShapeRow kRows[] = {
    {"aten::convolution", "", convolution_shapes},
    {"aten::convolution_backward", "", convolution_backward_shapes},
};

}  // namespace

std::span<const ShapeRow> convolution_rules() { return kRows; }

}  // namespace foregrad
