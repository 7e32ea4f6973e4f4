// Both normalize in float where the input is of half precision and the weights are float; then the
// statistics are float too.
#include "ops/normalization_shapes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>

#include "ops/result_types.h"

namespace foregrad {

namespace {

bool has_sizes(const at::Tensor& tensor, at::IntArrayRef sizes) {
  return !tensor.defined() || tensor.sizes() == sizes;
}

/// The sizes of layer norm's statistics: one for each group that is normalized.
std::optional<std::vector<int64_t>> layer_statistics(const at::Tensor& input,
                                                     at::IntArrayRef normalized) {
  const size_t dims = input.sizes().size();
  if (normalized.empty() || normalized.size() > dims) return std::nullopt;
  const size_t axis = dims - normalized.size();
  if (input.sizes().slice(axis) != normalized) return std::nullopt;
  std::vector<int64_t> sizes = input.sizes().vec();
  std::fill(sizes.begin() + static_cast<ptrdiff_t>(axis), sizes.end(), 1);
  return sizes;
}

Results layer_norm(Arguments args) {
  const at::Tensor& input = args[0].toTensor();
  const auto normalized = args[1].toIntVector();
  const at::Tensor weight = tensor_or_none(args[2]);
  const at::Tensor bias = tensor_or_none(args[3]);
  const auto statistics = layer_statistics(input, normalized);
  const auto dtype = parameter_dtype(input, {weight, bias});
  if (!statistics || !dtype || !has_sizes(weight, normalized) || !has_sizes(bias, normalized))
    return std::nullopt;
  return results(contiguous_result(input.sizes(), input),
                 contiguous_result(*statistics, input, *dtype),
                 contiguous_result(*statistics, input, *dtype));
}

at::Tensor wanted(bool is_wanted, const at::Tensor& result) {
  return is_wanted ? result : at::Tensor();
}

Results layer_norm_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& input = args[1].toTensor();
  const auto normalized = args[2].toIntVector();
  const at::Tensor weight = tensor_or_none(args[5]);
  const at::Tensor bias = tensor_or_none(args[6]);
  const auto mask = args[7].toBoolList();
  const auto statistics = layer_statistics(input, normalized);
  const auto dtype = parameter_dtype(input, {args[3].toTensor(), args[4].toTensor(), weight, bias});
  const bool is_covered =
      statistics && dtype && grad.sizes() == input.sizes() &&
      grad.scalar_type() == input.scalar_type() && has_sizes(weight, normalized) &&
      has_sizes(bias, normalized) && (!mask[1] || weight.defined()) &&
      (!mask[2] || bias.defined()) && (weight.defined() || *dtype == input.scalar_type()) &&
      has_sizes(args[3].toTensor(), *statistics) && has_sizes(args[4].toTensor(), *statistics);
  if (!is_covered) return std::nullopt;
  return results(wanted(mask[0], contiguous_result(input.sizes(), input)),
                 mask[1] ? contiguous_result(normalized, weight) : at::Tensor(),
                 mask[2] ? contiguous_result(normalized, bias) : at::Tensor());
}

/// What both kernels of group norm check.
bool is_grouped(const at::Tensor& input, Arguments counts) {
  const int64_t batch = counts[0].toInt();
  const int64_t channels = counts[1].toInt();
  const int64_t groups = counts[3].toInt();
  return input.dim() >= 2 && input.numel() > 0 && has_clear_format(input) &&
         input.size(0) == batch && input.size(1) == channels &&
         input.numel() == batch * channels * counts[2].toInt() && groups > 0 &&
         channels % groups == 0;
}

Results group_norm(Arguments args) {
  const at::Tensor& input = args[0].toTensor();
  const at::Tensor weight = tensor_or_none(args[1]);
  const at::Tensor bias = tensor_or_none(args[2]);
  const auto dtype = parameter_dtype(input, {weight, bias});
  if (!dtype || !is_grouped(input, args.slice(3, 4))) return std::nullopt;
  const int64_t channels = args[4].toInt();
  if (!has_sizes(weight, channels) || !has_sizes(bias, channels)) return std::nullopt;
  const std::vector<int64_t> statistics{args[3].toInt(), args[6].toInt()};
  return results(suggested_result(input.sizes(), input),
                 contiguous_result(statistics, input, *dtype),
                 contiguous_result(statistics, input, *dtype));
}

Results group_norm_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& input = args[1].toTensor();
  const at::Tensor weight = tensor_or_none(args[4]);
  const auto mask = args[9].toBoolList();
  const std::vector<int64_t> statistics{args[5].toInt(), args[8].toInt()};
  const auto dtype = parameter_dtype(input, {args[2].toTensor(), args[3].toTensor(), weight});
  const bool is_covered =
      dtype && is_grouped(input, args.slice(5, 4)) && grad.sizes() == input.sizes() &&
      grad.scalar_type() == input.scalar_type() && has_sizes(weight, args[6].toInt()) &&
      has_sizes(args[2].toTensor(), statistics) && has_sizes(args[3].toTensor(), statistics) &&
      (weight.defined() || *dtype == input.scalar_type());
  if (!is_covered) return std::nullopt;
  const at::Tensor parameter = contiguous_result({args[6].toInt()}, input, *dtype);
  return results(wanted(mask[0], at::empty_like(input.contiguous(input.suggest_memory_format()))),
                 wanted(mask[1], parameter), wanted(mask[2], at::empty_like(parameter)));
}

/// Weights `v`, rescaled to the lengths `g` along the first or the last dimension.
bool is_weight_norm(const at::Tensor& v, const at::Tensor& g, int64_t dim) {
  const bool is_outer = v.dim() > 0 && (dim == 0 || dim == v.dim() - 1);
  if (!is_outer || v.numel() == 0 || v.scalar_type() != g.scalar_type()) return false;
  std::vector<int64_t> lengths(v.sizes().size(), 1);
  lengths[static_cast<size_t>(dim)] = v.size(dim);
  return g.sizes() == at::IntArrayRef(lengths) &&
         (v.scalar_type() == at::kFloat || v.scalar_type() == at::kDouble);
}

Results weight_norm(Arguments args) {
  const at::Tensor& v = args[0].toTensor();
  const at::Tensor& g = args[1].toTensor();
  if (!is_weight_norm(v, g, args[2].toInt()) || !g.is_contiguous()) return std::nullopt;
  return results(contiguous_result(v.sizes(), v),
                 at::empty_strided(g.sizes(), g.strides(), g.options()));
}

Results weight_norm_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& v = args[1].toTensor();
  const at::Tensor& g = args[2].toTensor();
  const at::Tensor& norms = args[3].toTensor();
  const bool is_covered = is_weight_norm(v, g, args[4].toInt()) && grad.sizes() == v.sizes() &&
                          norms.sizes() == g.sizes() && have_one_floating_dtype({grad, v, norms}) &&
                          v.is_contiguous() && g.is_contiguous() && norms.is_contiguous();
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(v.sizes(), v), contiguous_result(g.sizes(), g));
}

constexpr ShapeRow kRows[] = {
    {"aten::_weight_norm_interface", "", weight_norm},
    {"aten::_weight_norm_interface_backward", "", weight_norm_backward},
    {"aten::native_group_norm", "", group_norm},
    {"aten::native_group_norm_backward", "", group_norm_backward},
    {"aten::native_layer_norm", "", layer_norm},
    {"aten::native_layer_norm_backward", "", layer_norm_backward},
};

}  // namespace

std::span<const ShapeRow> normalization_rules() { return kRows; }

}  // namespace foregrad
