#include "runtime/call_nodes.h"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace foregrad {

namespace {

/// Where gradients of an input go. One that becomes a leaf that requires grad only in the call gets
/// its accumulator now: a node's edges are known before anything depends on it.
torch::autograd::Edge edge_of(const at::Tensor& input) {
  if (input.requires_grad()) return torch::autograd::impl::gradient_edge(input);
  input.unsafeGetTensorImpl()->set_requires_grad(true);
  torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(input);
  input.unsafeGetTensorImpl()->set_requires_grad(false);
  return edge;
}

}  // namespace

CallNodes::CallNodes(const ViewAndMutationMeta& meta, std::span<const NodeParts> parts,
                     const std::vector<at::Tensor>& slots, std::span<const at::Tensor> outputs)
    : meta_(meta),
      parts_(parts),
      slots_(slots),
      outputs_(outputs),
      edges_(parts.size()),
      nodes_(parts.size()),
      are_joined_(parts.size()) {
  for (size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].tangents.empty()) continue;
    edges_[p].reserve(parts[p].differentiated.size());
    for (const InputIndex input : parts[p].differentiated) {
      const bool is_late = input.index >= meta.inputs.size() || has_late_edge(input);
      edges_[p].push_back(is_late ? torch::autograd::Edge() : edge_of(slots[input.index]));
    }
  }
}

/// A leaf that is given another storage or size gets its accumulator afterwards, as in eager.
bool CallNodes::has_late_edge(InputIndex input) const {
  const InputInfo& info = meta_.inputs[input.index];
  return info.is_leaf && (info.storage_changed || info.metadata_mutated);
}

size_t CallNodes::part_of(const Differentiable& tensor) const {
  const auto found = std::ranges::find_if(parts_, [&](const NodeParts& part) {
    return std::ranges::find(part.tangents, tensor) != part.tangents.end();
  });
  return static_cast<size_t>(found - parts_.begin());
}

const at::Tensor& CallNodes::tensor_of(const Differentiable& cut) const {
  if (const auto* mutated = std::get_if<MutatedInput>(&cut)) return slots_[mutated->of.index];
  const OutputIndex output = std::get<UserOutput>(cut).output;
  const OutputOrigin& origin = meta_.outputs[output.index].origin;
  if (const auto* view = std::get_if<ViewOfInput>(&origin)) return slots_[view->slot.index];
  if (const auto* based = std::get_if<ViewOfIntermediate>(&origin))
    return slots_[based->slot.index];
  return outputs_[output.index];
}

const c10::intrusive_ptr<BackwardNode>& CallNodes::make(size_t p) {
  const NodeParts& part = parts_[p];
  if (nodes_[p] || part.tangents.empty()) return nodes_[p];
  for (const Differentiable& cut : part.cuts) {
    if (const size_t behind = part_of(cut); behind < parts_.size()) {
      make(behind);
      join_new_tensors(behind);
    }
  }
  for (size_t i = 0; i < edges_[p].size(); ++i) {
    const InputIndex input = part.differentiated[i];
    if (input.index >= meta_.inputs.size()) {
      const at::Tensor& tensor = tensor_of(part.cuts[input.index - meta_.inputs.size()]);
      TORCH_INTERNAL_ASSERT(tensor.defined(), "a history leads to a tensor that is not made yet");
      edges_[p][i] = torch::autograd::impl::gradient_edge(tensor);
    } else if (has_late_edge(input)) {
      edges_[p][i] = edge_of(slots_[input.index]);
    }
  }
  nodes_[p] =
      c10::make_intrusive<BackwardNode>(part.backwards, part.tangents.size(), part.autocast);
  nodes_[p]->set_next_edges(std::move(edges_[p]));
  return nodes_[p];
}

void CallNodes::join_new_tensors(size_t p) {
  if (are_joined_[p]) return;
  are_joined_[p] = true;
  for (const Differentiable& tensor : parts_[p].tangents) {
    const auto* output = std::get_if<UserOutput>(&tensor);
    if (!output || !meta_.outputs[output->output.index].is_computed()) continue;
    const at::Tensor& result = outputs_[output->output.index];
    torch::autograd::impl::set_gradient_edge(result, enter(p, result));
  }
}

torch::autograd::Edge CallNodes::enter(size_t p, const at::Tensor& tensor) const {
  return nodes_[p]->enter(tensor, /*is_only=*/parts_[p].tangents.size() == 1);
}

torch::autograd::Edge CallNodes::history_of(const Differentiable& role, const at::Tensor& tensor) {
  const size_t p = parts_.size() == 1 ? 0 : part_of(role);
  make(p);
  return enter(p, tensor);
}

void CallNodes::finish() {
  for (size_t p = 0; p < parts_.size(); ++p) {
    if (!make(p)) continue;
    join_new_tensors(p);
  }
}

}  // namespace foregrad
