// The simple choice of saved values: what backward reads of forward, as few tricks as possible.
//
// A view of a saved value costs nothing to take again, so the walk goes through views (chains of
// them, views that come in lists) to the value that owns the memory, and saves that. The owner is a
// primal, or the result of a node that made it. Views that may copy count as views: at worst
// backward copies again.
#include <optional>
#include <vector>

#include "ops/schema.h"
#include "partition/partition.h"

namespace foregrad {
namespace {

// Whether all results of the node are views, and taking them again does nothing else.
bool gives_only_views(const Node& node) {
  std::vector<bool> is_aliased(node.results.size());
  for (const AliasPair& pair : memory_aliases(node.op)) is_aliased[pair.result] = true;
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (!is_aliased[i]) return false;
  }
  return !has_effects(node.op);
}

class SavedValueChoice {
 public:
  explicit SavedValueChoice(const Graph& joint)
      : joint_(joint),
        producer_(producers(joint)),
        is_visited_(joint.values.size()),
        is_saved_(joint.values.size()),
        is_late_(joint.values.size()) {
    for (const GraphInput& input : joint.inputs) {
      if (belongs_to_backward(input.role)) is_late_[input.value.index] = true;
    }
  }

  SavedValues choose() {
    for (const Node& node : joint_.nodes) {
      if (node.phase == Phase::Backward)
        for_each_read(node, [this](ValueId value) { need(value); });
    }
    for (const GraphOutput& output : joint_.outputs) {
      if (output.value && belongs_to_backward(output.role)) need(*output.value);
    }
    SavedValues saved;
    for (uint32_t i = 0; i < is_saved_.size(); ++i) {
      if (is_saved_[i]) saved.push_back({i});
    }
    return saved;
  }

 private:
  void need(ValueId value) {
    if (is_visited_[value.index]) return;
    is_visited_[value.index] = true;
    const auto id = producer_[value.index];
    if (!id) {
      if (!is_late_[value.index]) is_saved_[value.index] = true;
      return;
    }
    const Node& node = joint_.node(*id);
    if (node.phase == Phase::Backward) return;
    if (gives_only_views(node)) {
      for_each_read(node, [this](ValueId read) { need(read); });
    } else {
      is_saved_[value.index] = true;
    }
  }

  const Graph& joint_;
  std::vector<std::optional<NodeId>> producer_;
  std::vector<bool> is_visited_;  // by ValueId
  std::vector<bool> is_saved_;    // by ValueId
  std::vector<bool> is_late_;     // by ValueId: an input of backward
};

}  // namespace

SavedValues choose_saved_values(const Graph& joint) { return SavedValueChoice(joint).choose(); }

}  // namespace foregrad
