#include "capture/stand_in.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/function.h>

#include "capture/keys.h"
#include "capture/trace_tensor.h"
#include "capture/view_history.h"
#include "graph/alias.h"

namespace foregrad {

namespace {

/// Where the history of an input that is no leaf begins: gradients are captured at its edge, it
/// never runs.
struct PrimalNode final : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& /*grads*/) override {
    TORCH_INTERNAL_ASSERT(false, "the gradient of a traced input went past its edge");
  }
  std::string name() const override { return "ForegradPrimal"; }
};

at::Tensor make_wrapper(Tracer& tracer, const TensorType& type, const InputRole& role) {
  BelowTracingScope below;
  return at::functionalization::impl::to_functional_tensor(tracer.make_input(type, role));
}

void set_history(at::Tensor& wrapper, bool requires_grad, bool is_leaf) {
  if (!requires_grad) return;
  if (is_leaf) {
    wrapper.unsafeGetTensorImpl()->set_requires_grad(true);
  } else {
    torch::autograd::create_gradient_edge(wrapper, c10::make_intrusive<PrimalNode>());
  }
}

}  // namespace

at::Tensor make_stand_in(Tracer& tracer, const TensorType& type, const InputRole& role,
                         bool requires_grad, bool is_leaf) {
  at::Tensor wrapper = make_wrapper(tracer, type, role);
  set_history(wrapper, requires_grad, is_leaf);
  return wrapper;
}

at::Tensor place_in_memory(const at::Tensor& memory, const TensorType& type, int64_t offset,
                           bool requires_grad, bool is_leaf) {
  TracingScope scope(TracingScope::Level::Replaying);
  at::Tensor wrapper;
  {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    wrapper = alias_of(memory, type, offset);
  }
  set_history(wrapper, requires_grad, is_leaf);
  return wrapper;
}

at::Tensor place_as_view(const at::Tensor& base, const TensorType& type, int64_t offset,
                         uint8_t creation_meta) {
  TracingScope scope(TracingScope::Level::Replaying);
  at::Tensor view = alias_of(base, type, offset, creation_meta);
  const c10::IValue value(view);
  follow_views({&value, 1});
  return view;
}

at::Tensor make_tangent(Tracer& tracer, const TensorType& type, const Differentiable& of) {
  return make_wrapper(tracer, type, Tangent{of});
}

std::optional<ValueId> traced_value(const at::Tensor& wrapper) {
  if (!wrapper.defined()) return std::nullopt;
  at::functionalization::impl::sync(wrapper);
  const TraceTensorImpl* traced = traced_inside(wrapper);
  TORCH_INTERNAL_ASSERT(traced, "a tensor of the trace holds no traced value");
  return traced->value();
}

namespace {

ValueId value_in_memory(const at::Tensor& memory) {
  const TraceTensorImpl* traced = as_trace_tensor(memory);
  TORCH_INTERNAL_ASSERT(traced, "a memory of the trace holds no traced value");
  return traced->value();
}

/// The tensor that owns the memory, pending writes applied.
const at::Tensor& owner_of(const c10::Storage& storage) {
  auto& memory = functional_storage(storage);
  memory.apply_updates();
  return memory.base();
}

}  // namespace

ValueId traced_memory(const c10::Storage& storage) { return value_in_memory(owner_of(storage)); }

MemoryView memory_view(const at::Tensor& wrapper) {
  at::functionalization::impl::sync(wrapper);
  MemoryView view{.storage = wrapper.storage(), .type = type_of(wrapper)};
  view.offset = offset_between(type_of(owner_of(view.storage)), view.type);
  return view;
}

ValueId traced_value(const MemoryView& view) {
  const at::Tensor& owner = owner_of(view.storage);
  TensorType type = view.type;
  type.storage_offset = owner.storage_offset();
  if (view.offset == 0 && type == type_of(owner)) return value_in_memory(owner);
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  at::AutoDispatchSkipFunctionalize below;
  return value_in_memory(alias_of(owner, view.type, view.offset));
}

}  // namespace foregrad
