#include "runtime/backward_node.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>

#include <mutex>

namespace foregrad {

namespace {

/// Gives the tangent the layout that it was traced with: a view operator in the graph may count on
/// it.
at::Tensor coerce(at::Tensor tangent, const TensorType& type) {
  if (tangent.scalar_type() == type.dtype && tangent.strides() == at::IntArrayRef(type.strides) &&
      !tangent.is_conj() && !tangent.is_neg()) {
    return tangent;
  }
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  auto coerced = at::empty_strided(type.sizes, type.strides, tangent.options().dtype(type.dtype));
  return coerced.copy_(tangent);
}

/// With `create_graph`, makes differentiating a gradient again an error instead of a silent zero.
void refuse_second_order(torch::autograd::variable_list& grads) {
  for (at::Tensor& grad : grads) {
    if (!grad.defined()) continue;
    grad = grad.detach();
    torch::autograd::create_gradient_edge(
        grad, c10::make_intrusive<torch::autograd::Error>(
                  "Foregrad: the gradient of a compiled function can't be differentiated again "
                  "yet. Expected one "
                  "backward without a graph of its own. Run the function eagerly where gradients "
                  "of gradients are needed."));
  }
}

}  // namespace

torch::autograd::variable_list BackwardNode::apply(torch::autograd::variable_list&& tangents) {
  std::lock_guard lock(mutex_);
  TangentLayout layout(tangent_count_);
  bool any = false;
  for (size_t i = 0; i < tangent_count_; ++i) {
    if (tangents[i].defined()) layout[i] = c10::DimVector(tangents[i].strides());
    any |= tangents[i].defined();
  }
  if (!any) return torch::autograd::variable_list(num_outputs());
  std::vector<at::Tensor> inputs;
  inputs.reserve(saved_.size() + tangent_count_);
  const Backward& backward = source_->backward_for(layout);
  if (backward.error) std::rethrow_exception(backward.error);
  // What other tangents need stays saved: as in eager, their backward may run later.
  for (const uint32_t index : backward.saved) {
    inputs.push_back(saved_[index].unpack(getptr()));
    if (releases_) saved_[index].reset_data();
  }
  size_t next = 0;
  for (size_t i = 0; i < tangent_count_; ++i) {
    if (layout[i]) inputs.push_back(coerce(std::move(tangents[i]), backward.tangents[next++]));
  }
  tangents.clear();
  auto grads = backward.plan.run(std::move(inputs));
  if (c10::GradMode::is_enabled()) refuse_second_order(grads);
  return grads;
}

}  // namespace foregrad
