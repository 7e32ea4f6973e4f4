#include "graph/tensor_type.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

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
