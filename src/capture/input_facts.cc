#include "capture/input_facts.h"

#include <c10/core/TensorImpl.h>

#include <unordered_map>

namespace foregrad {

InputSet gather_inputs(std::span<const at::Tensor> tensors) {
  InputSet inputs;
  std::unordered_map<const c10::TensorImpl*, uint32_t> number_of;
  std::unordered_map<const void*, uint32_t> storage_numbers;
  const auto add = [&](const at::Tensor& tensor, bool is_argument) {
    const auto storage = storage_numbers.try_emplace(storage_identity(tensor),
                                                     static_cast<uint32_t>(storage_numbers.size()));
    number_of.emplace(tensor.unsafeGetTensorImpl(), static_cast<uint32_t>(inputs.tensors.size()));
    inputs.tensors.push_back(tensor);
    inputs.facts.push_back({.type = type_of(tensor),
                            .requires_grad = tensor.requires_grad(),
                            .is_leaf = tensor.is_leaf(),
                            .storage = storage.first->second,
                            .storage_bytes = static_cast<int64_t>(tensor.storage().nbytes()),
                            .view_of = std::nullopt,
                            .is_argument = is_argument});
  };
  for (const at::Tensor& tensor : tensors) add(tensor, true);
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].is_view()) continue;
    const at::Tensor base = base_of(tensors[i]);
    if (!number_of.contains(base.unsafeGetTensorImpl())) add(base, false);
    inputs.facts[i].view_of = number_of.at(base.unsafeGetTensorImpl());
  }
  return inputs;
}

}  // namespace foregrad
