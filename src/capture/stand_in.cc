#include "capture/stand_in.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <torch/csrc/autograd/function.h>

#include "capture/keys.h"
#include "capture/trace_tensor.h"

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

}  // namespace

at::Tensor make_stand_in(Tracer& tracer, const TensorType& type, const InputRole& role,
                         bool requires_grad, bool is_leaf) {
  at::Tensor wrapper = make_wrapper(tracer, type, role);
  if (!requires_grad) return wrapper;
  if (is_leaf) {
    wrapper.unsafeGetTensorImpl()->set_requires_grad(true);
  } else {
    torch::autograd::create_gradient_edge(wrapper, c10::make_intrusive<PrimalNode>());
  }
  return wrapper;
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

}  // namespace foregrad
