#include "capture/replayed_node.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>
#include <variant>

#include "capture/call_again.h"
#include "graph/refusal.h"

namespace foregrad {

ReplayedNode::ReplayedNode(std::shared_ptr<const RecordedNode> recorded,
                           const std::vector<at::Tensor>& values, LateTensors late)
    : recorded_(std::move(recorded)), late_(std::move(late)) {
  for (const auto& input : recorded_->inputs) {
    const bool leads_on = input && values[input->index].requires_grad();
    add_next_edge(leads_on ? torch::autograd::impl::gradient_edge(values[input->index])
                           : torch::autograd::Edge());
  }
  for (const auto& result : recorded_->results) {
    if (!result) {
      add_input_metadata(undefined_input());
      continue;
    }
    add_input_metadata(at::TensorOptions(result->dtype).device(at::kCPU),
                       c10::fromIntArrayRefSlow(result->sizes), /*is_tensor_subclass=*/false,
                       /*is_nested=*/false, /*grad_dtype=*/result->dtype);
  }
  checked_.resize(recorded_->saved.size());
  unchecked_.resize(recorded_->saved.size());
  for (size_t i = 0; i < recorded_->saved.size(); ++i) {
    const auto& saved = recorded_->saved[i];
    if (!values[saved.value.index].defined())
      throw Refusal(
          "the backward of a custom function, or a hook, reads a tensor that was made after it");
    if (!saved.result) save(i, values[saved.value.index]);
  }
}

void ReplayedNode::save(size_t entry, const at::Tensor& tensor) {
  const auto& saved = recorded_->saved[entry];
  if (saved.is_checked || saved.result) {
    checked_[entry] =
        torch::autograd::SavedVariable(tensor, /*is_output=*/saved.result.has_value());
  } else {
    unchecked_[entry] = tensor;
  }
}

at::Tensor ReplayedNode::unpack(size_t entry) {
  if (late_ && unchecked_[entry].defined()) {
    at::Tensor late = (*late_)(recorded_->saved[entry].value);
    if (late.defined()) return late;
  }
  return unchecked_[entry].defined() ? unchecked_[entry] : checked_[entry].unpack(getptr());
}

void ReplayedNode::give(const at::Tensor& tensor, const NodeResult& result) {
  const torch::autograd::Edge edge{getptr(), result.result};
  if (result.is_written) {
    torch::autograd::impl::rebase_history(tensor, edge);
  } else {
    torch::autograd::impl::set_gradient_edge(tensor, edge);
  }
  if (result.creation_meta != 0) {
    torch::autograd::impl::get_view_autograd_meta(tensor)->set_creation_meta(
        static_cast<torch::autograd::CreationMeta>(result.creation_meta));
  }
  for (size_t i = 0; i < recorded_->saved.size(); ++i) {
    if (recorded_->saved[i].result == result.result) save(i, tensor);
  }
}

torch::autograd::variable_list ReplayedNode::apply(torch::autograd::variable_list&& tangents) {
  uint32_t defined = 0;
  for (size_t i = 0; i < tangents.size(); ++i) {
    if (tangents[i].defined()) defined |= 1U << i;
  }
  const auto found = recorded_->backwards.find(defined);
  TORCH_INTERNAL_ASSERT(found != recorded_->backwards.end(),
                        "a result that nobody saw has a tangent");
  const RecordedBackward& backward = found->second;
  if (backward.error) std::rethrow_exception(backward.error);
  if (backward.writes && c10::GradMode::is_enabled()) {
    throw Refusal(
        "the backward of a custom function, or a hook, writes a tensor that it did not make. "
        "Expected one that doesn't, to differentiate its gradients again.");
  }
  std::vector<at::Tensor> values;
  for (size_t i = 0; i < recorded_->saved.size(); ++i) values.push_back(unpack(i));
  for (at::Tensor& tangent : tangents) {
    if (tangent.defined()) values.push_back(std::move(tangent));
  }
  values.resize(backward.value_count);
  for (const RecordedOp& op : backward.ops) call_in_backward(op, values);
  torch::autograd::variable_list gradients;
  for (const auto& gradient : backward.gradients)
    gradients.push_back(gradient ? values[gradient->index] : at::Tensor());
  return gradients;
}

void ReplayedNode::release() {
  checked_.clear();
  unchecked_.clear();
}

ReplayedNodes::~ReplayedNodes() {
  for (const auto& hook : hooks_) hook->release();
}

void ReplayedNodes::run(const RecordedOp& op, std::vector<at::Tensor>& values) {
  if (op.is_call) {
    call_again(op, values);
  } else {
    do_again(op, values);
  }
}

void ReplayedNodes::do_again(const RecordedOp& op, const std::vector<at::Tensor>& values) {
  const at::Tensor& tensor = values[std::get<ValueId>(op.results[0]).index];
  if (!tensor.defined())
    throw Refusal("a custom function changes a tensor that lies otherwise than it was given");
  if (op.hook) {
    add_hook(recording_.hooks[*op.hook], values);
    return;
  }
  for (uint32_t i = 0; i < op.writes[0].version_advance; ++i)
    torch::autograd::impl::bump_version(tensor);
  if (!op.attaches) return;
  auto& node = nodes_[op.attaches->node];
  if (!node)
    node = c10::make_intrusive<ReplayedNode>(recording_.nodes[op.attaches->node], values, late_);
  node->give(tensor, *op.attaches);
}

void ReplayedNodes::add_hook(const RecordedHook& hook, const std::vector<at::Tensor>& values) {
  auto node = c10::make_intrusive<ReplayedNode>(hook.does, values, late_);
  hooks_.push_back(node);
  values[hook.value.index].register_hook([node](const at::Tensor& gradient) {
    return node->apply(torch::autograd::variable_list{gradient}).front();
  });
}

}  // namespace foregrad
