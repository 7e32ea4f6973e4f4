// The autograd nodes of one call: made when a tensor that the caller sees gets one as its history.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/metadata.h"
#include "runtime/backward_node.h"

namespace foregrad {

/// One autograd node of a compiled function.
struct NodeParts {
  std::vector<Differentiable> tangents{};  // in the order in which they get the node
  std::vector<Differentiable> cuts{};      // tensors that gradients go to besides the inputs
  /// Where gradients go, in the backward's order: inputs, and, numbered on from these, cuts.
  std::vector<InputIndex> differentiated{};
  std::vector<size_t> saved{};  // which of the forward's saved values it saves
  std::shared_ptr<BackwardSource> backwards{};
  std::optional<AutocastState> autocast{};  // of backward, if it is fixed
};

class CallNodes {
 public:
  /// To be made before inputs are written. `slots`: inputs first, then what effects make.
  /// `outputs`: of the call, the computed ones given. Both must outlive it.
  CallNodes(const ViewAndMutationMeta& meta, std::span<const NodeParts> parts,
            const std::vector<at::Tensor>& slots, std::span<const at::Tensor> outputs);

  /// Returns where the tensor's history is to begin. To be called once for each.
  torch::autograd::Edge history_of(const Differentiable& role, const at::Tensor& tensor);

  /// Makes what is not made yet, and gives new tensors their history.
  void finish();

  /// By part; null if the part has no tangents.
  const c10::intrusive_ptr<BackwardNode>& node(size_t part) const { return nodes_[part]; }

 private:
  bool has_late_edge(InputIndex input) const;
  const at::Tensor& tensor_of(const Differentiable& cut) const;
  const c10::intrusive_ptr<BackwardNode>& make(size_t part);
  void join_new_tensors(size_t part);
  torch::autograd::Edge enter(size_t part, const at::Tensor& tensor) const;
  size_t part_of(const Differentiable& tensor) const;

  const ViewAndMutationMeta& meta_;
  const std::span<const NodeParts> parts_;
  const std::vector<at::Tensor>& slots_;
  const std::span<const at::Tensor> outputs_;
  std::vector<torch::autograd::edge_list> edges_;  // by part; taken when its node is made
  std::vector<c10::intrusive_ptr<BackwardNode>> nodes_;
  std::vector<bool> are_joined_;  // by part: its new tensors
};

}  // namespace foregrad
