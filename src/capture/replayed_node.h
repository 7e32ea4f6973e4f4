// The autograd node of a replay that stands for one that the function attached itself, and hooks
// that stand for those that it registered.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/recording.h"

namespace foregrad {

/// Gives the tensor that stands for an input when backward runs; undefined: the value itself does.
/// Null: values stand for themselves. Held by nodes, which may outlive their replay.
using LateTensors = std::shared_ptr<const std::function<at::Tensor(ValueId)>>;

/// Calls again what the recorded backward called, for the tangents that it gets.
class ReplayedNode final : public torch::autograd::Node {
 public:
  /// `values`: of the replay, numbered as the recording's. `late`: for tensors that are not
  /// checked.
  ReplayedNode(std::shared_ptr<const RecordedNode> recorded, const std::vector<at::Tensor>& values,
               LateTensors late);

  /// Makes the tensor the node's result.
  void give(const at::Tensor& tensor, const NodeResult& result);
  /// Lets go of what it saved.
  void release();
  torch::autograd::variable_list apply(torch::autograd::variable_list&& tangents) override;
  std::string name() const override { return "ForegradCustomFunction"; }

 private:
  void save(size_t entry, const at::Tensor& tensor);
  at::Tensor unpack(size_t entry);

  std::shared_ptr<const RecordedNode> recorded_;
  const LateTensors late_;
  // Entry by entry as recorded.
  std::vector<torch::autograd::SavedVariable> checked_;  // and results: they would hold the node
  std::vector<at::Tensor> unchecked_;
};

/// The nodes of one replay.
class ReplayedNodes {
 public:
  explicit ReplayedNodes(const Recording& recording, LateTensors late = nullptr)
      : recording_(recording), late_(std::move(late)), nodes_(recording.nodes.size()) {}
  ReplayedNodes(const ReplayedNodes&) = delete;
  ReplayedNodes& operator=(const ReplayedNodes&) = delete;
  /// Hooks must not be called any more: they may hold what holds them.
  ~ReplayedNodes();

  /// Calls the operator again, or does what the function did without one.
  void run(const RecordedOp& op, std::vector<at::Tensor>& values);
  /// Does what the function did to a value without an operator call.
  void do_again(const RecordedOp& op, const std::vector<at::Tensor>& values);

 private:
  void add_hook(const RecordedHook& hook, const std::vector<at::Tensor>& values);

  const Recording& recording_;
  const LateTensors late_;
  std::vector<c10::intrusive_ptr<ReplayedNode>> nodes_;  // once a tensor is a result of it
  std::vector<c10::intrusive_ptr<ReplayedNode>> hooks_;  // their nodes have no edges
};

}  // namespace foregrad
