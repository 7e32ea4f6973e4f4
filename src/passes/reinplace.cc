// A node may write into its first argument if nobody can tell:
//
// - the operator is pointwise, without effects, and has an in-place variant with the same
// arguments;
//   its result is one tensor;
// - the argument is a value that a node of this graph made in fresh memory: not an input, no view;
// - no input and no output may share that memory (a saved value is an input or output);
// - the node is the last that reads or defines any value which may share it, and no other argument
//   of the node does: an element could be overwritten before it is read;
// - argument and result have one type, and no two elements share a place.
//
// The result then lives in the argument's memory and may be overwritten in turn by the same rules.
// That is safe because the argument's class is dead from here on.
#include "passes/reinplace.h"

#include <utility>
#include <vector>

#include "analysis/liveness.h"
#include "ops/schema.h"

namespace foregrad {
namespace {

class Reinplacer {
 public:
  explicit Reinplacer(const Graph& graph)
      : graph_(graph), liveness_(graph), is_fresh_(graph.values.size()) {
    for (const Node& node : graph.nodes) {
      for_each_definition(node, [&](ValueId value) { is_fresh_[value.index] = true; });
      for_each_alias(node, [&](ValueId, ValueId result) { is_fresh_[result.index] = false; });
    }
  }

  bool can_overwrite_first(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!is_pointwise(node.op) || has_effects(node.op) || !memory_aliases(node.op).empty() ||
        !in_place_variant(node.op)) {
      return false;
    }
    const auto* first = std::get_if<ValueId>(&node.args[0]);
    const auto* result = std::get_if<ValueId>(&node.results[0]);
    return first && result && is_fresh_[first->index] && !liveness_.is_shared_outside(*first) &&
           liveness_.last_use_of_memory(*first) == id && reads_memory_once(node, *first) &&
           graph_.type(*first) == graph_.type(*result) &&
           graph_.type(*result).is_dense_and_non_overlapping();
  }

 private:
  bool reads_memory_once(const Node& node, ValueId memory) const {
    int reads = 0;
    for_each_read(node, [&](ValueId value) {
      if (liveness_.classes().may_alias(value, memory)) ++reads;
    });
    return reads == 1;
  }

  const Graph& graph_;
  Liveness liveness_;
  std::vector<bool> is_fresh_;  // by ValueId: a node defines it, in memory of its own
};

}  // namespace

Graph reinplace(Graph graph) {
  std::vector<NodeId> overwriting;
  {
    const Reinplacer reinplacer(graph);
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      if (!graph.nodes[i].overwrites && reinplacer.can_overwrite_first({i}))
        overwriting.push_back({i});
    }
  }
  for (const NodeId id : overwriting) graph.nodes[id.index].overwrites = 0;
  return graph;
}

}  // namespace foregrad
