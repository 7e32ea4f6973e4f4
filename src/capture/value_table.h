// A value of a recording is a tensor object: two handles of one tensor are one value, an in-place
// operator gives the value it wrote. Tensors are matched by identity; one that autograd saved comes
// back as a new object without an operator call, and is matched by the trace tensor inside its
// wrapper.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/node.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/recording.h"

namespace foregrad {

/// Whether the tensor was itself made to require grad, whatever its history or its base says.
bool has_own_flag(const at::Tensor& tensor);

/// Numbers the tensors of a recording under construction, and notes in it what autograd knows of
/// them when they are first seen.
class ValueTable {
 public:
  explicit ValueTable(Recording& recording) : recording_(recording) {}

  /// Returns the tensor's value, a new one if it has none yet.
  ValueId number(const at::Tensor& tensor);
  std::optional<ValueId> find(const at::Tensor& tensor) const;
  /// The same for a tensor that may be a new object for one that autograd saved.
  std::optional<ValueId> find_again(const at::Tensor& tensor) const;
  /// Takes a tensor that nobody has seen for the value whose tensor nobody else holds any more:
  /// `torch::ones` and its like give another object than the operator in it gave.
  void adopt(const at::Tensor& tensor);
  /// Returns the first value that shares the tensor's version counter.
  ValueId counter_of(const at::Tensor& tensor) const;

  /// Returns the operand of an argument. Throws `Refusal` for a tensor without a value.
  Operand take(const c10::IValue& entry, const c10::OperatorHandle& op) const;
  /// Returns the operand of a result.
  Operand give(const c10::IValue& entry);

  /// The tensor of each value, by ValueId.
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  /// Whether it required grad when that was last noted.
  bool requires_grad(ValueId value) const { return requires_grad_[value.index]; }
  void note_requires_grad(ValueId value, bool flag) { requires_grad_[value.index] = flag; }
  bool has_own_flag(ValueId value) const { return own_flags_[value.index]; }
  void note_own_flag(ValueId value) { own_flags_[value.index] = true; }
  /// Whether its history is another one than was last noted. That of a view changes by itself, but
  /// for one that a custom function gave.
  bool has_other_node(ValueId value) const;
  void note_node(ValueId value);
  /// By how much its version has advanced since that was last noted.
  uint32_t unnoted_advance(ValueId value) const;
  void note_version(ValueId value);
  /// Returns the value whose noted history begins at the edge.
  std::optional<ValueId> find_by_node(const torch::autograd::Edge& edge) const;
  /// The storage that operators left it in.
  const c10::StorageImpl* storage(ValueId value) const { return storages_[value.index]; }
  void note_storage(ValueId value);

 private:
  /// An edge without a hold on its node.
  struct NodeKey {
    const torch::autograd::Node* node = nullptr;
    uint32_t result = 0;
    bool operator==(const NodeKey&) const = default;
  };
  static NodeKey node_of(const at::Tensor& tensor);
  NodeKey noted_node_of(const at::Tensor& tensor);

  ValueId value_of(const at::Tensor& tensor, const c10::OperatorHandle& op) const;

  Recording& recording_;
  // By ValueId. Tensors are kept: a freed one's address would be taken for another value.
  std::vector<at::Tensor> tensors_;
  std::vector<bool> requires_grad_;
  std::vector<bool> own_flags_;
  std::vector<NodeKey> nodes_;
  // Of all that were noted, so that no other node comes to lie where one of them did.
  std::vector<c10::weak_intrusive_ptr<torch::autograd::Node>> noted_nodes_;
  std::vector<ValueId> counters_;
  std::vector<uint32_t> versions_;  // by counter
  std::vector<const c10::StorageImpl*> storages_;
  std::unordered_map<const c10::TensorImpl*, ValueId> by_identity_;
  std::unordered_map<uint32_t, ValueId> by_traced_value_;
  std::unordered_map<const void*, ValueId> by_counter_;
};

}  // namespace foregrad
