// One walk in order, with a hash table from what a node computes (operator, operands, result types)
// to the first node that computes it. A later equal node may be merged into the first if nobody can
// see it. Equal values are not enough for that, because memory is visible too:
//
// - Two fresh results. The caller can write to an output in place. If a merged value were also an
//   output (or a view of it were), that write would reach what eager keeps apart: another output,
//   or a value saved for backward, which eager would not even notice to have changed. So a forward
//   result is merged only if neither memory reaches a primal output. Gradients are made when
//   nothing is saved any more, so there it is enough that not both reach the caller.
// - Two equal views share their base's memory anyway. They are merged unless both are outputs,
// which
//   must be two tensor objects. An operator that may copy instead counts as fresh.
//
// Forward nodes are merged without a look at the backward part. That leaves one case to repair: a
// gradient that does not depend on tangents may be a view of a merged forward value, or the value
// itself (a custom backward that returns what it saved). Such a gradient gets a copy of the nodes
// that made its memory, as backward nodes with values of their own.
//
// Of several equal nodes that can't all be merged only the first is remembered: linear, and the
// rare missed merge costs nothing but time.
#include "passes/cse.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/liveness.h"
#include "analysis/value_numbers.h"
#include "ops/schema.h"

namespace foregrad {
namespace {

// Calls `visit(ValueId, ValueId)` for the results of two nodes that compute the same.
template <class Visitor>
void zip_results(const Node& left, const Node& right, Visitor&& visit) {
  const auto from = results_of(left);
  const auto to = results_of(right);
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i]) visit(*from[i], *to[i]);
  }
}

class Cse {
 public:
  explicit Cse(Graph graph)
      : graph_(std::move(graph)),
        classes_(graph_),
        renamed_(graph_.values.size()),
        is_output_(graph_.values.size()),
        class_reaches_(graph_.values.size()),
        is_certain_view_(graph_.values.size()),
        is_told_apart_(told_apart_values(graph_)) {
    for (uint32_t i = 0; i < renamed_.size(); ++i) renamed_[i] = {i};
    for (const GraphOutput& output : graph_.outputs) {
      if (!output.value) continue;
      const bool is_gradient = std::holds_alternative<Grad>(output.role);
      mark(is_output_[output.value->index], is_gradient);
      mark(class_reaches_[classes_.of(*output.value).index], is_gradient);
    }
    for (const Node& node : graph_.nodes) {
      TORCH_INTERNAL_ASSERT(!node.overwrites, "cse runs before reinplace");
      if (!is_certain_view(node.op)) continue;
      for (const AliasPair& pair : view_aliases(node.op)) {
        for_each_value(node.results[pair.result],
                       [&](ValueId value) { is_certain_view_[value.index] = true; });
      }
    }
  }

  Graph run() {
    // The nodes stay as they were for `copy_memory_of`.
    Graph result{.values = {}, .nodes = {}, .inputs = graph_.inputs, .outputs = graph_.outputs};
    result.nodes.reserve(graph_.nodes.size());
    nodes_ = &result.nodes;
    values_ = &graph_.values;
    for (const Node& original : graph_.nodes) {
      Node node = original;
      for_each_read(node, [&](ValueId& value) { value = renamed_[value.index]; });
      bool stays = !is_pure(node.op);
      for_each_definition(original,
                          [&](ValueId value) { stays = stays || is_told_apart_[value.index]; });
      if (stays || !merge(node)) nodes_->push_back(std::move(node));
    }
    const auto producer = producers(graph_);
    for (GraphOutput& output : result.outputs) {
      if (!output.value) continue;
      const bool is_gradient = std::holds_alternative<Grad>(output.role);
      output.value =
          is_gradient ? copy_memory_of(producer, *output.value) : renamed_[output.value->index];
    }
    result.values = std::move(graph_.values);
    return result;
  }

 private:
  // Where a value, or the memory of a class of values, reaches the caller.
  struct Reach {
    bool primal_output = false;
    bool gradient = false;
    bool any() const { return primal_output || gradient; }
  };

  static void mark(Reach& reach, bool is_gradient) {
    (is_gradient ? reach.gradient : reach.primal_output) = true;
  }

  // Merges the node into an equal earlier one if there is one and nobody can tell; remembers it
  // otherwise.
  bool merge(const Node& node) {
    const size_t hash = hash_of(node);
    const auto find_in = [&](const Table& table) -> const Node* {
      const auto [begin, end] = table.equal_range(hash);
      const auto found = std::find_if(begin, end, [&](const auto& entry) {
        return computes_same(graph_, nodes_->at(entry.second), node);
      });
      return found == end ? nullptr : &nodes_->at(found->second);
    };
    const Node* first = find_in(forward_);
    if (!first && node.phase == Phase::Backward) first = find_in(backward_);
    if (first && can_merge(*first, node)) {
      zip_results(*first, node, [this](ValueId kept, ValueId gone) {
        renamed_[gone.index] = kept;
        add(is_output_[kept.index], is_output_[gone.index]);
        add(class_reaches_[classes_.of(kept).index], class_reaches_[classes_.of(gone).index]);
      });
      return true;
    }
    if (!first) {
      Table& table = node.phase == Phase::Forward ? forward_ : backward_;
      table.emplace(hash, static_cast<uint32_t>(nodes_->size()));
    }
    return false;
  }

  static void add(Reach& to, Reach from) {
    to.primal_output = to.primal_output || from.primal_output;
    to.gradient = to.gradient || from.gradient;
  }

  bool can_merge(const Node& first, const Node& node) const {
    const bool forward = node.phase == Phase::Forward;
    bool can = true;
    zip_results(first, node, [&](ValueId kept, ValueId gone) {
      const bool view = is_certain_view_[gone.index];
      const Reach ours = view ? is_output_[gone.index] : class_reaches_[classes_.of(gone).index];
      const Reach theirs = view ? is_output_[kept.index] : class_reaches_[classes_.of(kept).index];
      bool visible = false;
      if (view) {
        visible = forward ? ours.primal_output && theirs.primal_output : ours.any() && theirs.any();
      } else if (forward) {
        visible = ours.primal_output || theirs.primal_output;
      } else if (first.phase == Phase::Forward) {
        visible = ours.any() || theirs.primal_output;
      } else {
        visible = ours.any() && theirs.any();
      }
      can = can && !visible;
    });
    return can;
  }

  using Producers = std::vector<std::optional<NodeId>>;

  // Whether a forward value that was merged away lies between the value and its memory.
  bool lost_forward_memory(const Producers& producer, ValueId value) const {
    const auto id = producer[value.index];
    if (!id) return false;
    const Node& node = graph_.node(*id);
    if (node.phase == Phase::Forward && renamed_[value.index] != value) return true;
    bool lost = false;
    for_each_alias(node, [&](ValueId argument, ValueId result) {
      lost = lost || (result == value && lost_forward_memory(producer, argument));
    });
    return lost;
  }

  // Appends copies of the nodes that made the value's memory. Values that shared memory in the
  // graph share it in the copies.
  ValueId copy_memory_of(const Producers& producer, ValueId value) {
    if (const auto known = copies_.find(value); known != copies_.end()) return known->second;
    const auto id = producer[value.index];
    if (!lost_forward_memory(producer, value) || !is_pure(graph_.node(*id).op))
      return renamed_[value.index];
    Node copy = graph_.node(*id);
    copy.phase = Phase::Backward;
    for (uint32_t i = 0; i < copy.args.size(); ++i) {
      const bool shares = std::ranges::any_of(memory_aliases(copy.op),
                                              [&](AliasPair pair) { return pair.argument == i; });
      for_each_value(copy.args[i], [&](ValueId& read) {
        read = shares ? copy_memory_of(producer, read) : renamed_[read.index];
      });
    }
    for_each_definition(copy, [&](ValueId& result) {
      values_->push_back(TensorType(graph_.type(result)));
      const ValueId fresh{static_cast<uint32_t>(values_->size() - 1)};
      copies_.emplace(result, fresh);
      result = fresh;
    });
    nodes_->push_back(std::move(copy));
    return copies_.at(value);
  }

  using Table = std::unordered_multimap<size_t, uint32_t>;  // hash to place in `*nodes_`

  Graph graph_;  // as it came, but for values of copies
  const AliasClasses classes_;
  std::vector<ValueId> renamed_;        // by ValueId
  std::vector<Reach> is_output_;        // by ValueId
  std::vector<Reach> class_reaches_;    // by the class's ValueId
  std::vector<bool> is_certain_view_;   // by ValueId
  std::vector<bool> is_told_apart_;     // by ValueId: a memory variant tells it from an equal one
  std::vector<Node>* nodes_ = nullptr;  // of the result
  std::vector<TensorType>* values_ = nullptr;
  Table forward_, backward_;
  std::unordered_map<ValueId, ValueId> copies_;
};

}  // namespace

Graph cse(Graph graph) { return Cse(std::move(graph)).run(); }

}  // namespace foregrad
