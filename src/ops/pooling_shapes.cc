// Batches are [N, C, spatial…], or [C, spatial…] without N. Most kernels give what they compute of
// a batch in the memory format that the batch suggests.
#include "ops/pooling_shapes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <numeric>

#include "ops/result_types.h"

namespace foregrad {

namespace {

bool is_batch(const at::Tensor& tensor, int64_t spatial) {
  // Without N some kernels add it, and then find another format.
  const bool is_one = tensor.dim() == spatial + 1 && tensor.is_contiguous();
  return (is_one || tensor.dim() == spatial + 2) && tensor.numel() > 0 && has_clear_format(tensor);
}

std::vector<int64_t> with_spatial_sizes(at::IntArrayRef sizes, at::IntArrayRef spatial) {
  std::vector<int64_t> changed = sizes.slice(0, sizes.size() - spatial.size()).vec();
  changed.insert(changed.end(), spatial.begin(), spatial.end());
  return changed;
}

bool are_positive(at::IntArrayRef sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size > 0; });
}

template <int64_t kSpatial>
Results adaptive_average(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const auto spatial = args[1].toIntVector();
  const bool is_covered = is_batch(self, kSpatial) && is_real_floating(self.scalar_type()) &&
                          spatial.size() == kSpatial && are_positive(spatial);
  if (!is_covered) return std::nullopt;
  const auto sizes = with_spatial_sizes(self.sizes(), spatial);
  return results(kSpatial == 2 ? suggested_result(sizes, self) : contiguous_result(sizes, self));
}

template <int64_t kSpatial>
Results adaptive_average_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const bool is_covered = is_batch(self, kSpatial) && have_one_floating_dtype({grad, self}) &&
                          grad.dim() == self.dim() && grad.numel() > 0 &&
                          grad.sizes().slice(0, grad.sizes().size() - kSpatial) ==
                              self.sizes().slice(0, self.sizes().size() - kSpatial);
  if (!is_covered) return std::nullopt;
  return results(kSpatial == 2 ? suggested_result(self.sizes(), self)
                               : contiguous_result(self.sizes(), self));
}

/// Numbers of a window: one for all dimensions, or one for each.
std::optional<std::vector<int64_t>> for_each_dim(const c10::IValue& argument, size_t spatial) {
  auto numbers = argument.toIntVector();
  if (numbers.size() == 1) numbers.resize(spatial, numbers[0]);
  if (numbers.size() != spatial) return std::nullopt;
  return numbers;
}

/// The sizes of pooled dimensions, nothing if the window does not fit.
std::optional<std::vector<int64_t>> pooled_sizes(at::IntArrayRef spatial, Arguments window,
                                                 bool ceil_mode) {
  const size_t dims = spatial.size();
  const auto kernel = for_each_dim(window[0], dims);
  const auto stride = window[1].toIntVector().empty() ? kernel : for_each_dim(window[1], dims);
  const auto padding = for_each_dim(window[2], dims);
  const auto dilation = for_each_dim(window[3], dims);
  if (!kernel || !stride || !padding || !dilation) return std::nullopt;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < dims; ++i) {
    const int64_t k = (*kernel)[i], s = (*stride)[i], p = (*padding)[i], d = (*dilation)[i];
    if (k <= 0 || s <= 0 || d <= 0 || p < 0 || p > k / 2) return std::nullopt;
    const int64_t room = spatial[i] + 2 * p - d * (k - 1) - 1 + (ceil_mode ? s - 1 : 0);
    if (room < 0) return std::nullopt;
    int64_t size = room / s + 1;
    if (ceil_mode && (size - 1) * s >= spatial[i] + p) --size;
    if (size < 1) return std::nullopt;
    sizes.push_back(size);
  }
  return sizes;
}

Results max_pool3d(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const bool is_covered =
      is_batch(self, 3) && is_real_floating(self.scalar_type()) &&
      self.suggest_memory_format() != at::MemoryFormat::ChannelsLast;  // of four dimensions
  if (!is_covered) return std::nullopt;
  const auto spatial =
      pooled_sizes(self.sizes().slice(self.sizes().size() - 3), args.slice(1, 4), args[5].toBool());
  if (!spatial) return std::nullopt;
  const auto sizes = with_spatial_sizes(self.sizes(), *spatial);
  const at::Tensor pooled = suggested_result(sizes, self);
  return results(pooled, at::empty_like(pooled, pooled.options().dtype(at::kLong)));
}

Results max_pool3d_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const at::Tensor& indices = args[7].toTensor();
  const auto pooled = max_pool3d(args.slice(1, 6));
  const bool is_covered = pooled && have_one_floating_dtype({grad, self}) && is_batch(grad, 3) &&
                          grad.suggest_memory_format() != at::MemoryFormat::ChannelsLast &&
                          grad.sizes() == pooled->front().sizes() &&
                          indices.sizes() == grad.sizes() && indices.scalar_type() == at::kLong;
  if (!is_covered) return std::nullopt;
  return results(suggested_result(self.sizes(), self));
}

/// The sizes of a padded batch: two numbers a dimension, from the last.
template <size_t kSpatial>
std::optional<std::vector<int64_t>> padded_sizes(const at::Tensor& self, const c10::IValue& padding,
                                                 bool reflects) {
  const auto widths = padding.toIntVector();
  if (!is_batch(self, kSpatial) || widths.size() != 2 * kSpatial) return std::nullopt;
  std::vector<int64_t> sizes = self.sizes().vec();
  for (size_t i = 0; i < kSpatial; ++i) {
    int64_t& size = sizes[sizes.size() - 1 - i];
    const int64_t left = widths[2 * i], right = widths[2 * i + 1];
    if (left < 0 || right < 0 || (reflects && (left >= size || right >= size))) return std::nullopt;
    size += left + right;
  }
  return sizes;
}

bool is_padded_dtype(at::ScalarType dtype) { return is_real_floating(dtype); }

template <size_t kSpatial, bool kReflects>
Results padded(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const auto sizes = padded_sizes<kSpatial>(self, args[1], kReflects);
  if (!sizes || !is_padded_dtype(self.scalar_type())) return std::nullopt;
  return results(suggested_result(*sizes, self));
}

template <size_t kSpatial, bool kReflects>
Results padded_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const auto sizes = padded_sizes<kSpatial>(self, args[2], kReflects);
  const bool is_covered = sizes && is_padded_dtype(self.scalar_type()) &&
                          have_one_floating_dtype({grad, self}) &&
                          grad.sizes() == at::IntArrayRef(*sizes);
  if (!is_covered) return std::nullopt;
  return results(suggested_result(self.sizes(), self));
}

/// An input [N, C, spatial…] read at a grid [N, spatial…, coordinates].
bool is_grid(const at::Tensor& input, const at::Tensor& grid, int64_t spatial) {
  return have_one_floating_dtype({input, grid}) && input.dim() == spatial + 2 &&
         grid.dim() == input.dim() && input.numel() > 0 && input.size(0) == grid.size(0) &&
         grid.size(-1) == spatial &&
         (input.scalar_type() == at::kFloat || input.scalar_type() == at::kDouble);
}

std::vector<int64_t> sampled_sizes(const at::Tensor& input, const at::Tensor& grid,
                                   int64_t spatial) {
  return with_spatial_sizes(input.sizes(), grid.sizes().slice(1, static_cast<size_t>(spatial)));
}

bool is_mode(const c10::IValue& mode, int64_t modes) {
  return mode.toInt() >= 0 && mode.toInt() < modes;
}

template <int64_t kSpatial>
Results sampled(Arguments args) {
  const at::Tensor& input = args[0].toTensor();
  const at::Tensor& grid = args[1].toTensor();
  const bool is_covered = is_grid(input, grid, kSpatial) &&
                          is_mode(args[2], kSpatial == 2 ? 3 : 2) && is_mode(args[3], 3);
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(sampled_sizes(input, grid, kSpatial), input));
}

template <int64_t kSpatial>
Results sampled_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& input = args[1].toTensor();
  const at::Tensor& grid = args[2].toTensor();
  const auto mask = args[6].toBoolList();
  const bool is_covered = is_grid(input, grid, kSpatial) &&
                          have_one_floating_dtype({grad, input}) &&
                          is_mode(args[3], kSpatial == 2 ? 3 : 2) && is_mode(args[4], 3) &&
                          grad.sizes() == at::IntArrayRef(sampled_sizes(input, grid, kSpatial));
  if (!is_covered) return std::nullopt;
  return results(mask[0] ? contiguous_result(input.sizes(), input) : at::Tensor(),
                 contiguous_result(grid.sizes(), grid));
}

/// The number of places of a sliding window along one dimension.
std::optional<std::vector<int64_t>> window_places(at::IntArrayRef spatial, Arguments window) {
  const auto kernel = window[0].toIntVector();
  const auto dilation = window[1].toIntVector();
  const auto padding = window[2].toIntVector();
  const auto stride = window[3].toIntVector();
  std::vector<int64_t> places;
  for (const auto& numbers : {kernel, dilation, padding, stride}) {
    if (numbers.size() != spatial.size()) return std::nullopt;
  }
  for (size_t i = 0; i < spatial.size(); ++i) {
    if (kernel[i] <= 0 || dilation[i] <= 0 || padding[i] < 0 || stride[i] <= 0) return std::nullopt;
    const int64_t room = spatial[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
    if (room < 0) return std::nullopt;
    places.push_back(room / stride[i] + 1);
  }
  return places;
}

int64_t product_of(at::IntArrayRef numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{1}, std::multiplies<>());
}

/// Sizes [N, C · window, places].
Results columns(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (!is_batch(self, 2) || !is_real_floating(self.scalar_type())) return std::nullopt;
  const auto places = window_places(self.sizes().slice(self.sizes().size() - 2), args.slice(1, 4));
  if (!places) return std::nullopt;
  auto sizes = self.sizes().slice(0, self.sizes().size() - 2).vec();
  sizes.back() *= product_of(args[1].toIntVector());
  sizes.push_back(product_of(*places));
  return results(contiguous_result(sizes, self));
}

Results image_of_columns(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const auto spatial = args[1].toIntVector();
  const bool is_covered = (self.dim() == 2 || self.dim() == 3) && self.numel() > 0 &&
                          is_real_floating(self.scalar_type()) && spatial.size() == 2 &&
                          are_positive(spatial);
  if (!is_covered) return std::nullopt;
  const auto places = window_places(spatial, args.slice(2, 4));
  const int64_t window = product_of(args[2].toIntVector());
  if (!places || self.size(-1) != product_of(*places) || self.size(-2) % window != 0)
    return std::nullopt;
  std::vector<int64_t> sizes;
  if (self.dim() == 3) sizes.push_back(self.size(0));
  sizes.push_back(self.size(-2) / window);
  sizes.insert(sizes.end(), spatial.begin(), spatial.end());
  return results(contiguous_result(sizes, self));
}

Results pixels_shuffled(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const int64_t factor = args[1].toInt();
  if (!is_real_floating(self.scalar_type()) || self.dim() < 3 || self.numel() == 0 ||
      !has_clear_format(self) || factor <= 0 || self.size(-3) % (factor * factor) != 0)
    return std::nullopt;
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes[sizes.size() - 3] /= factor * factor;
  sizes[sizes.size() - 2] *= factor;
  sizes[sizes.size() - 1] *= factor;
  return results(suggested_result(sizes, self));
}

Results pixels_unshuffled(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const int64_t factor = args[1].toInt();
  if (!is_real_floating(self.scalar_type()) || self.dim() < 3 || self.numel() == 0 ||
      !has_clear_format(self) || factor <= 0 || self.size(-1) % factor != 0 ||
      self.size(-2) % factor != 0)
    return std::nullopt;
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes[sizes.size() - 3] *= factor * factor;
  sizes[sizes.size() - 2] /= factor;
  sizes[sizes.size() - 1] /= factor;
  return results(suggested_result(sizes, self));
}

Results channels_shuffled(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const int64_t groups = args[1].toInt();
  if (!is_real_floating(self.scalar_type()) || self.dim() < 3 || self.numel() == 0 ||
      !has_clear_format(self) || groups <= 0 || self.size(1) % groups != 0)
    return std::nullopt;
  return results(suggested_result(self.sizes(), self));
}

constexpr ShapeRow kRows[] = {
    {"aten::_adaptive_avg_pool2d", "", adaptive_average<2>},
    {"aten::_adaptive_avg_pool2d_backward", "", adaptive_average_backward<2>},
    {"aten::_adaptive_avg_pool3d", "", adaptive_average<3>},
    {"aten::_adaptive_avg_pool3d_backward", "", adaptive_average_backward<3>},
    {"aten::channel_shuffle", "", channels_shuffled},
    {"aten::col2im", "", image_of_columns},
    {"aten::grid_sampler_2d", "", sampled<2>},
    {"aten::grid_sampler_2d_backward", "", sampled_backward<2>},
    {"aten::grid_sampler_3d", "", sampled<3>},
    {"aten::grid_sampler_3d_backward", "", sampled_backward<3>},
    {"aten::im2col", "", columns},
    {"aten::max_pool3d_with_indices", "", max_pool3d},
    {"aten::max_pool3d_with_indices_backward", "", max_pool3d_backward},
    {"aten::native_channel_shuffle", "", channels_shuffled},
    {"aten::pixel_shuffle", "", pixels_shuffled},
    {"aten::pixel_unshuffle", "", pixels_unshuffled},
    {"aten::reflection_pad2d", "", padded<2, true>},
    {"aten::reflection_pad2d_backward", "", padded_backward<2, true>},
    {"aten::reflection_pad3d", "", padded<3, true>},
    {"aten::reflection_pad3d_backward", "", padded_backward<3, true>},
    {"aten::replication_pad2d", "", padded<2, false>},
    {"aten::replication_pad2d_backward", "", padded_backward<2, false>},
    {"aten::replication_pad3d", "", padded<3, false>},
    {"aten::replication_pad3d_backward", "", padded_backward<3, false>},
};

}  // namespace

std::span<const ShapeRow> pooling_rules() { return kRows; }

}  // namespace foregrad
