#include "runtime/backward_node.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <iterator>
#include <mutex>

namespace foregrad {

namespace {

/// Gives the tangent the layout that it was traced with: a view operator in the graph may count on
/// it. With grad mode the result keeps the history of a tangent that has one.
at::Tensor coerce(at::Tensor tangent, const TensorType& type) {
  if (tangent.scalar_type() == type.dtype && tangent.strides() == at::IntArrayRef(type.strides) &&
      !tangent.is_conj() && !tangent.is_neg()) {
    return tangent;
  }
  if (c10::GradMode::is_enabled() && tangent.requires_grad()) {
    const auto options = tangent.options().dtype(type.dtype);
    return at::empty_strided(type.sizes, type.strides, options).copy_(tangent);
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
/// `leads_to`: all that the gradients may depend on, or autograd would not come to the error.
void refuse_second_order(torch::autograd::variable_list& grads,
                         const torch::autograd::edge_list& leads_to, const std::string& reason) {
  for (at::Tensor& grad : grads) {
    if (!grad.defined()) continue;
    grad = grad.detach();
    torch::autograd::create_gradient_edge(
        grad, c10::make_intrusive<torch::autograd::Error>(
                  "Foregrad: this gradient of a compiled function can't be differentiated again: " +
                      reason + " Run the function eagerly where gradients of gradients are needed.",
                  torch::autograd::edge_list(leads_to)));
  }
}

/// The graph's views don't share the version of what they are taken of. A write to what the caller
/// got is to be noticed as in eager.
void share_version(const at::Tensor& saved, const at::Tensor& given) {
  if (!given.is_alias_of(saved)) return;
  saved.unsafeGetTensorImpl()->set_version_counter(torch::autograd::impl::version_counter(given));
}

}  // namespace

void BackwardNode::save(std::span<const at::Tensor> results, const SavedResult& saved) {
  const at::Tensor& value = results[saved.position];
  if (saved.in_output) share_version(value, results[*saved.in_output]);
  save(value, saved.is_output && is_history_of(value));
}

torch::autograd::Edge BackwardNode::enter(const at::Tensor& result, bool is_only) {
  torch::autograd::Edge own(getptr(), add_input_metadata(result));
  if (is_only) return own;
  auto node = c10::make_intrusive<ResultNode>();
  node->add_next_edge(std::move(own));
  results_.emplace_back(node);
  const uint32_t number = node->add_input_metadata(result);
  return {std::move(node), number};
}

/// Where the history of a result begins.
torch::autograd::Edge BackwardNode::edge_to(uint32_t result) {
  if (result < results_.size()) {
    if (auto node = results_[result].lock()) return {std::move(node), 0};
  }
  return {getptr(), result};
}

/// Not by `grad_fn`, which takes a view that was written from its base again, and may throw.
bool BackwardNode::is_history_of(const at::Tensor& tensor) const {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (!meta || !meta->grad_fn_) return false;
  if (meta->grad_fn_.get() == this) return true;
  return dynamic_cast<const ResultNode*>(meta->grad_fn_.get()) &&
         meta->grad_fn_->next_edge(0).function.get() == this;
}

void BackwardNode::keep_weakly(const at::Tensor& input) {
  weak_.push_back({decltype(WeakInput::tensor)(input.getIntrusivePtr()),
                   static_cast<uint32_t>(input._version())});
}

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

torch::autograd::variable_list BackwardNode::apply(Tensors&& tangents) {
  std::lock_guard lock(mutex_);
  TangentLayout layout{
      .strides = std::vector<std::optional<c10::DimVector>>(tangent_count_),
      .autocast = autocast_.value_or(AutocastState{at::autocast::is_autocast_enabled(at::kCPU),
                                                   at::autocast::get_autocast_dtype(at::kCPU)})};
  bool any = false;
  for (size_t i = 0; i < tangent_count_; ++i) {
    if (tangents[i].defined()) {
      // Those of one without elements mean nothing, and kernels may look at them.
      layout.strides[i] = tangents[i].numel() == 0
                              ? contiguous_strides(c10::DimVector(tangents[i].sizes()))
                              : c10::DimVector(tangents[i].strides());
    }
    any |= tangents[i].defined();
  }
  if (!any) return Tensors(num_outputs());
  if (c10::GradMode::is_enabled()) return differentiate(std::move(tangents), std::move(layout));
  const Backward& backward = source_->backward_for(layout);
  if (backward.error) std::rethrow_exception(backward.error);
  return run(backward, std::move(tangents));
}

BackwardNode::Tensors BackwardNode::run(const Backward& backward, Tensors&& tangents) {
  Tensors written;
  if (!backward.writes.empty())
    std::ranges::copy_if(tangents, std::back_inserter(written), &at::Tensor::defined);
  Tensors results = backward.run(take_inputs(backward, std::move(tangents)));
  const size_t gradients = results.size() - backward.writes.size();
  for (size_t i = 0; i < backward.writes.size(); ++i) {
    const Backward::Write& write = backward.writes[i];
    const at::Tensor& target = write.input ? late_.at(*write.input) : written[*write.tangent];
    {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      target.copy_(results[gradients + i]);
    }
    for (uint32_t k = 0; k < write.version_advance; ++k)
      torch::autograd::impl::bump_version(target);
  }
  results.resize(gradients);
  return results;
}

const at::Tensor& BackwardNode::late_tensor(const Backward::Late& late) const {
  const at::Tensor& tensor = late_.at(late.input);
  TORCH_CHECK(tensor.sizes() == at::IntArrayRef(late.type.sizes) &&
                  tensor.strides() == at::IntArrayRef(late.type.strides) &&
                  tensor.scalar_type() == late.type.dtype,
              "Foregrad: a custom function's backward reads an argument that was `",
              to_text(late.type), "` in the call and is `", to_text(type_of(tensor)),
              "` now. Change its sizes after backward.");
  return tensor;
}

at::Tensor BackwardNode::take_saved(uint32_t index) {
  if (index < saved_.size()) {
    at::Tensor value = saved_[index].unpack(getptr());
    if (releases_) saved_[index].reset_data();
    return value;
  }
  const WeakInput& weak = weak_.at(index - saved_.size());
  auto tensor = weak.tensor.lock();
  TORCH_CHECK(tensor,
              "Foregrad: a gradient of a gradient needs an argument of the compiled function that "
              "no longer exists. Keep the arguments until the last backward.");
  at::Tensor input(std::move(tensor));
  TORCH_CHECK(static_cast<uint32_t>(input._version()) == weak.version,
              "one of the variables needed for gradient computation has been modified by an "
              "inplace operation: an argument of a compiled function is at version ",
              input._version(), "; expected version ", weak.version,
              " instead. Write a copy of it, or after backward.");
  return input;
}

/// What the plan takes. What other tangents need stays saved: as in eager, their backward may run
/// later.
BackwardNode::Tensors BackwardNode::take_inputs(const Backward& backward, Tensors&& tangents) {
  check_unchanged(backward.unchanged);
  Tensors inputs;
  inputs.reserve(backward.saved.size() + backward.tangents.size());
  for (const uint32_t index : backward.saved) inputs.push_back(take_saved(index));
  size_t next = 0;
  for (at::Tensor& tangent : tangents) {
    if (tangent.defined()) inputs.push_back(coerce(std::move(tangent), backward.tangents[next++]));
  }
  tangents.clear();
  for (const Backward::Late& late : backward.late) inputs.push_back(late_tensor(late));
  return inputs;
}

BackwardNode::Tensors BackwardNode::differentiate(Tensors&& tangents, TangentLayout layout) {
  std::vector<bool> requires_grad;
  for (size_t i = 0; i < tangents.size(); ++i) {
    const at::Tensor& tangent = tangents[i];
    requires_grad.push_back(tangent.defined() && tangent.requires_grad());
    // The gradient with respect to an expanded tangent has elements of its own.
    if (requires_grad[i] && !tangent.is_non_overlapping_and_dense())
      layout.strides[i] = contiguous_strides(c10::DimVector(tangent.sizes()));
  }
  const DifferentiableBackward& again = source_->differentiable_for(layout, requires_grad);
  if (again.refusal.empty()) return differentiate_again(std::move(tangents), again);
  const Backward& backward = source_->backward_for(layout);
  if (backward.error) std::rethrow_exception(backward.error);
  torch::autograd::edge_list leads_to = next_edges();
  for (const at::Tensor& tangent : tangents) {
    if (tangent.defined() && tangent.requires_grad())
      leads_to.push_back(torch::autograd::impl::gradient_edge(tangent));
  }
  Tensors gradients = run(backward, std::move(tangents));
  refuse_second_order(gradients, leads_to, again.refusal);
  return gradients;
}

BackwardNode::Tensors BackwardNode::differentiate_again(Tensors&& tangents,
                                                        const DifferentiableBackward& again) {
  const size_t saved_count = again.backward.saved.size();
  Tensors given;
  std::ranges::copy_if(tangents, std::back_inserter(given), &at::Tensor::defined);
  Tensors inputs = take_inputs(again.backward, std::move(tangents));
  const Tensors coerced(inputs.begin() + static_cast<ptrdiff_t>(saved_count),
                        inputs.begin() + static_cast<ptrdiff_t>(saved_count + given.size()));
  torch::autograd::edge_list edges;
  for (const auto& edge : again.edges) {
    using EdgeOf = DifferentiableBackward::EdgeOf;
    if (edge.kind == EdgeOf::Edge) {
      edges.push_back(next_edge(edge.index));
    } else if (edge.kind == EdgeOf::Output) {
      edges.push_back(edge_to(edge.index));
    } else {
      edges.push_back(torch::autograd::impl::gradient_edge(coerced[edge.index]));
    }
  }
  Tensors results = again.backward.run(std::move(inputs));
  if (!again.differentiable.empty()) {
    auto node =
        c10::make_intrusive<BackwardNode>(again.next, again.differentiable.size(), autocast_);
    node->set_next_edges(std::move(edges));
    for (const uint32_t i : again.differentiable) {
      torch::autograd::impl::set_gradient_edge(
          results[i], node->enter(results[i], again.differentiable.size() == 1));
    }
    node->reserve(again.saved.size());
    for (const SavedResult& saved : again.saved) node->save(results, saved);
    node->versions_ = versions_;
    node->late_ = late_;
  }
  results.resize(num_outputs());
  // A tangent that is handed on is the caller's.
  for (at::Tensor& result : results) {
    for (size_t i = 0; i < coerced.size(); ++i) {
      if (result.is_same(coerced[i])) result = given[i];
    }
  }
  return results;
}

}  // namespace foregrad
