#include "graph/tensor_type.h"

#include <c10/core/RefcountedDeleter.h>
#include <c10/core/ScalarType.h>
#include <c10/core/TensorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/literal.h"

namespace foregrad {

int64_t TensorType::numel() const {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

size_t TensorType::size_bytes() const {
  return static_cast<size_t>(numel()) * c10::elementSize(dtype);
}

bool TensorType::is_dense_and_non_overlapping() const {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1) dims.emplace_back(strides[d], sizes[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t expected = 1;
  for (const auto& [stride, size] : dims) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

bool TensorType::begins_aligned() const {
  constexpr int64_t kWidest = 16;
  return storage_offset * static_cast<int64_t>(c10::elementSize(dtype)) % kWidest == 0;
}

c10::DimVector contiguous_strides(const c10::DimVector& sizes) {
  c10::DimVector strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
  return strides;
}

const void* storage_identity(const at::Tensor& tensor) {
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const at::DataPtr& data = storage->_mutable_data_ptr_no_checks();
  // Storages made of one another share the data's reference count.
  return data.get_deleter() == &c10::refcounted_deleter ? data.get_context()
                                                        : static_cast<const void*>(storage);
}

at::Tensor base_of(const at::Tensor& view) { return at::Tensor(view._base()); }

const void* version_counter_identity(const at::Tensor& tensor) {
  const c10::VariableVersion& counter = tensor.unsafeGetTensorImpl()->version_counter();
  // It is a pointer to the counter and tells nobody.
  static_assert(sizeof(counter) == sizeof(const void*));
  return *reinterpret_cast<const void* const*>(&counter);
}

TensorType type_of(const at::Tensor& tensor) {
  return {.dtype = tensor.scalar_type(),
          .sizes = c10::DimVector(tensor.sizes()),
          .strides = c10::DimVector(tensor.strides()),
          .storage_offset = tensor.storage_offset(),
          .device = tensor.device(),
          .is_conj = tensor.is_conj(),
          .is_neg = tensor.is_neg()};
}

std::string to_text(const TensorType& type) {
  std::string text = fmt::format("{}[{}]{{{}}}", dtype_name(type.dtype), fmt::join(type.sizes, ","),
                                 fmt::join(type.strides, ","));
  if (type.storage_offset != 0) text += fmt::format("+{}", type.storage_offset);
  if (!type.device.is_cpu()) text += fmt::format("@{}", type.device.str());
  if (type.is_conj) text += " conj";
  if (type.is_neg) text += " neg";
  return text;
}

}  // namespace foregrad
