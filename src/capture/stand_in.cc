#include "capture/stand_in.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "capture/keys.h"
#include "capture/trace_tensor.h"
#include "graph/refusal.h"

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

/// Sees the same memory as elements of another dtype.
at::Tensor with_dtype(const at::Tensor& source, at::ScalarType dtype) {
  if (source.scalar_type() == dtype) return source;
  if (c10::isComplexType(source.scalar_type()) &&
      c10::toRealValueType(source.scalar_type()) == dtype)
    return at::view_as_real(source);
  const auto item = static_cast<int64_t>(c10::elementSize(dtype));
  const auto source_item = static_cast<int64_t>(source.element_size());
  if (source_item == item) return source.view(dtype);
  // A memory of bytes; what is left at its end is nobody's.
  if (source.dim() == 1 && source.stride(0) == 1) {
    const int64_t count = source.size(0) * source_item / item;
    return source.slice(0, 0, count * item / source_item).view(dtype);
  }
  throw Refusal(
      fmt::format("an argument of dtype `{}` is a view of a tensor of dtype `{}`, and is written, "
                  "which is not supported. Expected views of the base's dtype. Pass the base.",
                  c10::toString(dtype), c10::toString(source.scalar_type())));
}

at::Tensor alias_of(const at::Tensor& source, const TensorType& type, int64_t offset) {
  const at::Tensor elements = with_dtype(source, type.dtype);
  at::Tensor alias =
      at::as_strided(elements, type.sizes, type.strides, elements.storage_offset() + offset);
  if (alias.is_conj() != type.is_conj) alias = at::_conj(alias);
  if (alias.is_neg() != type.is_neg) alias = at::_neg_view(alias);
  return alias;
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
  using torch::autograd::CreationMeta;
  const auto creation = static_cast<CreationMeta>(creation_meta);
  TracingScope scope(TracingScope::Level::Replaying);
  c10::AutoGradMode grad_mode(creation != CreationMeta::NO_GRAD_MODE &&
                              creation != CreationMeta::INFERENCE_MODE);
  at::Tensor view = alias_of(base, type, offset);
  torch::autograd::impl::get_view_autograd_meta(view)->set_creation_meta(creation);
  return view;
}

int64_t offset_between(const TensorType& base, const TensorType& view) {
  const auto bytes = [](const TensorType& type) {
    return type.storage_offset * static_cast<int64_t>(c10::elementSize(type.dtype));
  };
  return (bytes(view) - bytes(base)) / static_cast<int64_t>(c10::elementSize(view.dtype));
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

ValueId traced_memory(const c10::Storage& storage) {
  auto& memory = functional_storage(storage);
  memory.apply_updates();
  const TraceTensorImpl* traced = as_trace_tensor(memory.base());
  TORCH_INTERNAL_ASSERT(traced, "a memory of the trace holds no traced value");
  return traced->value();
}

}  // namespace foregrad
