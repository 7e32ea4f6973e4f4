// Who shares memory with whom in a graph, and how long each memory is read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "ops/schema.h"

namespace foregrad {

/// Groups the values of a graph by memory: a view is in the class of what it is taken of, and a
/// result that overwrites an argument is in the argument's. Values in different classes never share
/// memory; values in one class may. Holds for graphs that `verify` accepts. Linear in the graph.
class AliasClasses {
 public:
  explicit AliasClasses(const Graph& graph);

  /// Returns the value that stands for the class: the one with the smallest id.
  ValueId of(ValueId value) const { return ValueId{representatives_.at(value.index)}; }
  bool may_alias(ValueId left, ValueId right) const { return of(left) == of(right); }

 private:
  uint32_t find(uint32_t index);
  void unite(ValueId left, ValueId right);

  std::vector<uint32_t> representatives_;  // by ValueId
};

/// Says for each value when it and its memory are last read. Node positions count from 0.
class Liveness {
 public:
  explicit Liveness(const Graph& graph);

  const AliasClasses& classes() const { return classes_; }
  /// Returns the last node that reads the value itself; none if no node does.
  std::optional<NodeId> last_read(ValueId value) const { return last_read_.at(value.index); }
  /// Returns the last node that reads or defines any value which may share the value's memory: when
  /// that node is done, nothing in the graph needs the memory.
  std::optional<NodeId> last_use_of_memory(ValueId value) const {
    return last_use_of_memory_[classes_.of(value).index];
  }
  /// Whether the memory is not the graph's own: it may be that of an input or of an output.
  bool is_shared_outside(ValueId value) const { return shared_outside_[classes_.of(value).index]; }

 private:
  AliasClasses classes_;
  std::vector<std::optional<NodeId>> last_read_;           // by ValueId
  std::vector<std::optional<NodeId>> last_use_of_memory_;  // by the class's ValueId
  std::vector<bool> shared_outside_;                       // by the class's ValueId
};

/// Returns the saved values of a forward graph that may lie in the memory of a new tensor that the
/// caller gets, or of a base of several, each with that tensor's position among the outputs. Those
/// that are such tensors themselves, or inputs, are not among them.
std::map<ValueId, size_t> saved_in_outputs(const Graph& forward);

/// Calls `visit(ValueId argument, ValueId result)` for each pair of values of the node that may
/// share memory, as the operator's aliases say; `overwrites` is not among them.
template <class Visitor>
void for_each_alias(const Node& node, Visitor&& visit) {
  for (const AliasPair& pair : memory_aliases(node.op)) {
    for_each_value(node.results.at(pair.result), [&](ValueId result) {
      for_each_value(node.args.at(pair.argument),
                     [&](ValueId argument) { visit(argument, result); });
    });
  }
}

}  // namespace foregrad
