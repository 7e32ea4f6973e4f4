#include "ops/indexing_shapes.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "ops/result_types.h"

namespace foregrad {

namespace {

bool is_index(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kInt;
}

/// `flip(self, dims)`: the type of `self`, whatever the dimensions. Dimensions that are out of
/// range or named twice are left to the real kernel, which has the error for them.
Results flip(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  std::vector<bool> seen(static_cast<size_t>(std::max<int64_t>(self.dim(), 1)));
  for (int64_t given : args[1].toIntVector()) {
    const auto dim = wrapped_dim(given, self.dim());
    if (!dim || seen[static_cast<size_t>(*dim)]) return std::nullopt;
    seen[static_cast<size_t>(*dim)] = true;
  }
  return results(at::empty_like(self));
}

/// The kernel moves one dimension at a time, each by joining two parts.
Results roll(Arguments args) {
  at::Tensor self = args[0].toTensor();
  const auto shifts = args[1].toIntVector();
  const auto dims = args[2].toIntVector();
  if (shifts.empty() || shifts.size() != dims.size()) return std::nullopt;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto dim = wrapped_dim(dims[i], self.dim());
    if (!dim || self.dim() == 0) return std::nullopt;
    if (self.numel() == 0) continue;
    const int64_t size = self.size(*dim);
    const int64_t start = (((size - shifts[i]) % size) + size) % size;
    self = at::cat({self.narrow(*dim, start, size - start), self.narrow(*dim, 0, start)}, *dim);
  }
  return results(at::empty_like(self));
}

Results index_select(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& index = args[2].toTensor();
  const auto dim = wrapped_dim(args[1].toInt(), self.dim());
  if (!dim || self.dim() == 0 || index.dim() > 1 || !is_index(index)) return std::nullopt;
  if (index.numel() > 0 && self.size(*dim) == 0) return std::nullopt;
  return results(contiguous_result(with_size(self.sizes(), *dim, index.numel()), self));
}

Results embedding(Arguments args) {
  const at::Tensor& weight = args[0].toTensor();
  const at::Tensor& indices = args[1].toTensor();
  if (weight.dim() != 2 || !is_index(indices)) return std::nullopt;
  if (indices.numel() > 0 && weight.size(0) == 0) return std::nullopt;
  std::vector<int64_t> sizes = indices.sizes().vec();
  sizes.push_back(weight.size(1));
  return results(contiguous_result(sizes, weight));
}

Results embedding_dense_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& indices = args[1].toTensor();
  const int64_t rows = args[2].toInt();
  const bool is_covered =
      grad.dim() == indices.dim() + 1 && is_index(indices) && rows > 0 &&
      is_real_floating(grad.scalar_type()) &&
      grad.sizes().slice(0, static_cast<size_t>(indices.dim())) == indices.sizes();
  if (!is_covered) return std::nullopt;
  return results(contiguous_result({rows, grad.size(-1)}, grad));
}

Results take(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& index = args[1].toTensor();
  if (index.scalar_type() != at::kLong || self.numel() == 0) return std::nullopt;
  return results(contiguous_result(index.sizes(), self));
}

/// What the mask selects, then zeros: the elements of `sizes`, whatever the mask holds.
Results masked_scatter_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& mask = args[1].toTensor();
  if (mask.scalar_type() != at::kBool || mask.sizes() != grad.sizes()) return std::nullopt;
  return results(contiguous_result(args[2].toIntVector(), grad));
}

Results repeat_interleave(Arguments args) {
  const at::Tensor& repeats = args[0].toTensor();
  if (!args[1].isInt() || repeats.dim() != 1 || !is_index(repeats)) return std::nullopt;
  if (args[1].toInt() < 0 || (repeats.size(0) == 0 && args[1].toInt() > 0)) return std::nullopt;
  return results(contiguous_result({args[1].toInt()}, repeats));
}

Results unfold_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const auto sizes = args[1].toIntVector();
  const auto dim = wrapped_dim(args[2].toInt(), static_cast<int64_t>(sizes.size()));
  const int64_t size = args[3].toInt();
  const int64_t step = args[4].toInt();
  if (!dim || sizes.empty() || step <= 0 || size < 0 || sizes[static_cast<size_t>(*dim)] < size)
    return std::nullopt;
  auto unfolded = with_size(sizes, *dim, (sizes[static_cast<size_t>(*dim)] - size) / step + 1);
  unfolded.push_back(size);
  if (grad.sizes() != at::IntArrayRef(unfolded)) return std::nullopt;
  return results(contiguous_result(sizes, grad));
}

/// Of a sorted sequence of one dimension.
Results found_places(const at::Tensor& sorted, const at::Tensor& values, bool as_int) {
  const bool is_covered = sorted.dim() == 1 && sorted.scalar_type() == values.scalar_type() &&
                          !sorted.is_complex() && sorted.scalar_type() != at::kBool;
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(values.sizes(), values, as_int ? at::kInt : at::kLong));
}

Results bucketize(Arguments args) {
  return found_places(args[1].toTensor(), args[0].toTensor(), args[2].toBool());
}

Results searchsorted(Arguments args) {
  if (!args[4].isNone() || !args[5].isNone()) return std::nullopt;
  return found_places(args[0].toTensor(), args[1].toTensor(), args[2].toBool());
}

constexpr ShapeRow kRows[] = {
    {"aten::bucketize", "Tensor", bucketize},
    {"aten::embedding", "", embedding},
    {"aten::embedding_dense_backward", "", embedding_dense_backward},
    {"aten::flip", "", flip},
    {"aten::index_select", "", index_select},
    {"aten::masked_scatter_backward", "", masked_scatter_backward},
    {"aten::repeat_interleave", "Tensor", repeat_interleave},
    {"aten::roll", "", roll},
    {"aten::searchsorted", "Tensor", searchsorted},
    {"aten::take", "", take},
    {"aten::unfold_backward", "", unfold_backward},
};

}  // namespace

std::span<const ShapeRow> indexing_rules() { return kRows; }

}  // namespace foregrad
