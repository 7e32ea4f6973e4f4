#include "capture/written_layout.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include "capture/trace_tensor.h"
#include "ops/schema.h"

namespace foregrad {

namespace functional = at::functionalization::impl;

namespace {

/// The same numbers, conjugated in memory and by the bit.
at::Tensor conj_bit(const at::Tensor& tensor) { return tensor.conj_physical()._conj(); }

}  // namespace

WrittenLayouts::WrittenLayouts(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  if (!is_mutating(op)) return;
  const size_t count = op.schema().arguments().size();
  const auto watch = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || !functional::isFunctionalTensor(tensor)) return;
    auto& storage = functional_storage(tensor.storage());
    storage.apply_updates();
    memories_.push_back({tensor, tensor.storage(), storage.base(), storage.generation()});
  };
  for (size_t i = 0; i < count; ++i) {
    if (!is_written(op, i)) continue;
    const c10::IValue& entry = stack[stack.size() - count + i];
    if (entry.isTensor()) {
      watch(entry.toTensor());
    } else if (entry.isTensorList()) {
      for (const at::Tensor& tensor : entry.toTensorVector()) watch(tensor);
    }
  }
}

void WrittenLayouts::keep() const {
  for (const Memory& memory : memories_) {
    auto& storage = functional_storage(memory.storage);
    if (storage.generation() == memory.generation) continue;
    storage.apply_updates();
    const at::Tensor& before = memory.before;
    at::AutoDispatchSkipFunctionalize below;
    at::Tensor now = storage.base();
    if (now.sizes() != before.sizes() || now.scalar_type() != before.scalar_type()) continue;
    // A write through a conjugate view leaves a lazy bit.
    if (now.is_conj() != before.is_conj()) now = now.is_conj() ? now.resolve_conj() : conj_bit(now);
    if (now.is_neg() && !before.is_neg()) now = now.resolve_neg();
    if (now.strides() != before.strides()) now = before.slice_scatter(now);
    if (now.is_same(storage.base())) continue;
    storage.add_update(now, {});
    storage.apply_updates();
    functional::sync(memory.tensor);
  }
}

}  // namespace foregrad
