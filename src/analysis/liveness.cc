#include "analysis/liveness.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace foregrad {

AliasClasses::AliasClasses(const Graph& graph) : representatives_(graph.values.size()) {
  std::iota(representatives_.begin(), representatives_.end(), 0);
  for (const Node& node : graph.nodes) {
    for_each_alias(node, [this](ValueId argument, ValueId result) { unite(argument, result); });
    if (node.overwrites) {
      for_each_value(node.args.at(*node.overwrites), [&](ValueId overwritten) {
        for_each_definition(node, [&](ValueId result) { unite(overwritten, result); });
      });
    }
  }
  for (uint32_t i = 0; i < representatives_.size(); ++i) representatives_[i] = find(i);
}

uint32_t AliasClasses::find(uint32_t index) {
  while (representatives_.at(index) != index) {
    representatives_[index] = representatives_[representatives_[index]];  // halves the path
    index = representatives_[index];
  }
  return index;
}

void AliasClasses::unite(ValueId left, ValueId right) {
  const uint32_t a = find(left.index), b = find(right.index);
  representatives_[std::max(a, b)] = std::min(a, b);
}

Liveness::Liveness(const Graph& graph)
    : classes_(graph),
      last_read_(graph.values.size()),
      last_use_of_memory_(graph.values.size()),
      shared_outside_(graph.values.size()) {
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const auto use = [&](ValueId value) {
      last_use_of_memory_[classes_.of(value).index] = NodeId{i};
    };
    for_each_read(graph.nodes[i], [&](ValueId value) {
      last_read_[value.index] = NodeId{i};
      use(value);
    });
    for_each_definition(graph.nodes[i], use);
  }
  for (const GraphInput& input : graph.inputs)
    shared_outside_[classes_.of(input.value).index] = true;
  for (const GraphOutput& output : graph.outputs) {
    if (output.value) shared_outside_[classes_.of(*output.value).index] = true;
  }
}

std::map<ValueId, size_t> saved_in_outputs(const Graph& forward) {
  const AliasClasses classes(forward);
  std::set<ValueId> known;  // whose version counter is the caller's already
  for (const GraphInput& input : forward.inputs) known.insert(input.value);
  std::map<ValueId, size_t> given;  // by class
  for (size_t i = 0; i < forward.outputs.size(); ++i) {
    const GraphOutput& output = forward.outputs[i];
    const bool is_given = std::holds_alternative<UserOutput>(output.role) ||
                          std::holds_alternative<IntermediateBase>(output.role);
    if (!is_given || !output.value) continue;
    known.insert(*output.value);
    given.emplace(classes.of(*output.value), i);
  }
  std::map<ValueId, size_t> found;
  for (const GraphOutput& output : forward.outputs) {
    if (!std::holds_alternative<Saved>(output.role) || known.contains(*output.value)) continue;
    const auto shared = given.find(classes.of(*output.value));
    if (shared != given.end()) found.emplace(*output.value, shared->second);
  }
  return found;
}

}  // namespace foregrad
