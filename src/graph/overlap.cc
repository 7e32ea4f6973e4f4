#include "graph/overlap.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace foregrad {

namespace {

constexpr int64_t kMostElements = 65'536;

/// Calls `visit` with the place of each element, counted from the start of the storage.
template <class Visit>
void for_each_element(const TensorType& type, Visit&& visit) {
  std::vector<int64_t> index(type.sizes.size());
  for (int64_t n = type.numel(); n > 0; --n) {
    int64_t element = type.storage_offset;
    for (size_t d = 0; d < index.size(); ++d) element += index[d] * type.strides[d];
    visit(element);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < type.sizes[d]) break;
      index[d] = 0;
    }
  }
}

/// Marks the bytes of a tensor in a map that begins at byte `begin`.
void mark(const TensorType& type, int64_t begin, std::vector<bool>& bytes) {
  const auto item = static_cast<int64_t>(c10::elementSize(type.dtype));
  for_each_element(type, [&](int64_t element) {
    for (int64_t b = element * item - begin; b < (element + 1) * item - begin; ++b) {
      if (b < 0 || b >= static_cast<int64_t>(bytes.size())) continue;
      bytes[b] = true;
    }
  });
}

}  // namespace

ByteExtent extent_of(const TensorType& type) {
  const auto item = static_cast<int64_t>(c10::elementSize(type.dtype));
  if (type.numel() == 0) return {type.storage_offset * item, type.storage_offset * item};
  int64_t last = type.storage_offset;
  for (size_t d = 0; d < type.sizes.size(); ++d) last += (type.sizes[d] - 1) * type.strides[d];
  return {type.storage_offset * item, (last + 1) * item};
}

bool overlaps(const TensorType& left, const TensorType& right) {
  const ByteExtent a = extent_of(left), b = extent_of(right);
  if (a.begin >= b.end || b.begin >= a.end || left.numel() == 0 || right.numel() == 0) return false;
  if (left.numel() > kMostElements || right.numel() > kMostElements) return true;
  const int64_t begin = std::max(a.begin, b.begin);
  std::vector<bool> bytes(static_cast<size_t>(std::min(a.end, b.end) - begin));
  mark(left, begin, bytes);
  std::vector<bool> others(bytes.size());
  mark(right, begin, others);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] && others[i]) return true;
  }
  return false;
}

bool overlaps_itself(const TensorType& type) {
  if (type.numel() == 0) return false;
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t d = 0; d < type.sizes.size(); ++d) {
    if (type.sizes[d] > 1) dims.emplace_back(type.strides[d], type.sizes[d]);
  }
  std::sort(dims.begin(), dims.end());
  // Each dimension steps over all that the smaller ones reach: no two elements meet.
  int64_t reach = 0;
  bool steps_over = true;
  for (const auto& [stride, size] : dims) {
    steps_over = steps_over && stride > reach;
    reach += stride * (size - 1);
  }
  if (steps_over) return false;
  if (type.numel() > kMostElements) return true;
  std::vector<bool> taken(static_cast<size_t>(reach) + 1);
  bool meets = false;
  for_each_element(type, [&](int64_t element) {
    const auto place = static_cast<size_t>(element - type.storage_offset);
    meets = meets || taken[place];
    taken[place] = true;
  });
  return meets;
}

}  // namespace foregrad
