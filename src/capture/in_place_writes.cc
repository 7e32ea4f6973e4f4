#include "capture/in_place_writes.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <utility>
#include <vector>

#include "capture/keys.h"
#include "capture/registration.h"
#include "capture/trace_tensor.h"
#include "capture/written_layout.h"
#include "graph/call.h"
#include "graph/overlap.h"
#include "ops/memory_variant.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

namespace functional = at::functionalization::impl;

bool shares_memory(const c10::OperatorHandle& op, const at::Tensor& self, const at::Tensor& other) {
  if (!other.defined() || !other.storage().is_alias_of(self.storage())) return false;
  const TensorType written = type_of(self);
  const TensorType read = type_of(other);
  // Each element is read before it is written.
  if (written == read) return !is_pointwise(op) && (self.numel() > 0 || self.is_same(other));
  return overlaps(written, read);
}

/// Whether the functional operator and the in-place one may leave other elements.
bool is_at_stake(const c10::OperatorHandle& op, const at::Tensor& wrapper,
                 const torch::jit::Stack& arguments) {
  const at::Tensor& self = arguments[0].toTensor();
  if (is_random(op) && !self.is_contiguous()) return true;
  // How products are rounded depends on the loop that the layout allows.
  if (self.is_complex() && !self.is_non_overlapping_and_dense()) return true;
  // The functional operator may give numbers of truth values.
  if (self.scalar_type() == at::kBool && !is_pointwise(op)) return true;
  if (lies_in_overlap(wrapper)) return true;
  bool result = false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    for_each_tensor(arguments[i],
                    [&](const at::Tensor& other) { result |= shares_memory(op, self, other); });
  }
  return result;
}

struct InPlaceWrite final : c10::OperatorKernel {
  InPlaceWrite(c10::OperatorHandle variant, c10::SafeKernelFunction usual)
      : variant_(std::move(variant)), usual_(std::move(usual)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    const auto count = static_cast<ptrdiff_t>(op.schema().arguments().size());
    torch::jit::Stack arguments(stack->end() - count, stack->end());
    const at::Tensor self = arguments[0].toTensor();
    if (self.defined() && functional::isFunctionalTensor(self)) {
      for (c10::IValue& entry : arguments) change_tensors(entry, inside_of);
      if (is_at_stake(op, self, arguments)) {
        write(self, std::move(arguments));
        stack->resize(stack->size() - count);
        if (!op.schema().returns().empty()) stack->emplace_back(self);
        return;
      }
    }
    const WrittenLayouts layouts(op, *stack);
    usual_.callBoxed(op, keys, stack);
    layouts.keep();
  }

 private:
  void write(const at::Tensor& self, torch::jit::Stack arguments) const {
    auto& storage = functional_storage(self.storage());
    storage.apply_updates();
    arguments.insert(arguments.begin(), storage.base());
    {
      at::AutoDispatchSkipFunctionalize below;
      variant_.callBoxed(&arguments);
    }
    storage.add_update(arguments[0].toTensor(), {});
    storage.apply_updates();
    functional::sync(self);
  }

  c10::OperatorHandle variant_;
  c10::SafeKernelFunction usual_;
};

std::vector<c10::RegistrationHandleRAII>* register_writes() {
  auto& dispatcher = c10::Dispatcher::singleton();
  auto* handles = new std::vector<c10::RegistrationHandleRAII>;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::Functionalize)) continue;
    const auto variant = memory_variant(*op);
    if (!variant) continue;
    auto usual = op->getComputedKernelForDispatchKey(c10::DispatchKey::Functionalize);
    handles->push_back(
        dispatcher.registerImpl(name, c10::DispatchKey::Functionalize,
                                c10::KernelFunction::makeFromBoxedFunctor(
                                    std::make_unique<InPlaceWrite>(*variant, std::move(usual))),
                                std::nullopt, nullptr, "registered by Foregrad"));
  }
  return handles;
}

}  // namespace

bool lies_in_overlap(const at::Tensor& wrapper) {
  functional::sync(wrapper);
  if (overlaps_itself(type_of(wrapper))) return true;
  const auto& views = functional::unsafeGetFunctionalWrapper(wrapper)->view_metas();
  const auto* memory = as_trace_tensor(functional_storage(wrapper.storage()).base());
  if (views.size() < 2 || !memory) return false;
  at::functionalization::impl::FunctionalizationReapplyViewsGuard reapply(true);
  BelowTracingScope below;
  at::Tensor view = memory->meta();
  for (size_t i = 0; i + 1 < views.size(); ++i) {
    view = views[i]->forward(view);
    if (overlaps_itself(type_of(view))) return true;
  }
  return false;
}

void keep_in_place_writes() {
  static const auto* const handles = [] {
    const QuietRegistration quiet;
    return register_writes();
  }();
  static_cast<void>(handles);
}

}  // namespace foregrad
