#include "runtime/backward_node.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
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
  // An expanded one, which has lazy bits, stays expanded.
  c10::DimVector sizes = type.sizes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (type.strides[d] == 0 && sizes[d] > 1) sizes[d] = 1;
  }
  auto coerced = at::empty_strided(sizes, type.strides, tangent.options().dtype(type.dtype));
  coerced.copy_(tangent.as_strided(sizes, tangent.strides()));
  return coerced.as_strided(type.sizes, type.strides);
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

void BackwardNode::note_version(Slot slot, const at::Tensor& tensor) {
  const c10::VariableVersion& counter = torch::autograd::impl::version_counter(tensor);
  versions_.push_back({slot, counter, counter.current_version()});
}

void BackwardNode::check_unchanged(const std::vector<Slot>& slots) const {
  for (const Version& version : versions_) {
    if (std::ranges::find(slots, version.slot) == slots.end()) continue;
    TORCH_CHECK(version.counter.current_version() == version.after_call,
                "one of the variables needed for gradient computation has been modified by an "
                "inplace operation: tensor ",
                version.slot.index, " of a compiled function is at version ",
                version.counter.current_version(), "; expected version ", version.after_call,
                " instead. Write a copy of it, or after backward.");
  }
}

torch::autograd::variable_list BackwardNode::apply(torch::autograd::variable_list&& tangents) {
  std::lock_guard lock(mutex_);
  TangentLayout layout(tangent_count_);
  bool any = false;
  for (size_t i = 0; i < tangent_count_; ++i) {
    if (tangents[i].defined()) {
      // Those of one without elements mean nothing, and kernels may look at them.
      layout[i] = tangents[i].numel() == 0 ? contiguous_strides(c10::DimVector(tangents[i].sizes()))
                                           : c10::DimVector(tangents[i].strides());
    }
    any |= tangents[i].defined();
  }
  if (!any) return torch::autograd::variable_list(num_outputs());
  std::vector<at::Tensor> inputs;
  inputs.reserve(saved_.size() + tangent_count_);
  const Backward& backward = source_->backward_for(layout);
  if (backward.error) std::rethrow_exception(backward.error);
  check_unchanged(backward.unchanged);
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
