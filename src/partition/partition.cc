// The cut. Phases say on which side a node lies; what is left to decide is which forward nodes
// backward must run again, given the saved values.
//
// Backward's needs are followed against the arrows, from its nodes and the gradients: a saved value
// and a tangent are inputs, a value of a backward node is there, and for any other the node that
// defines it is marked to run again and its operands are needed in turn. Nodes keep the joint's
// order on both sides. Linear.
//
// Ids: both graphs have the joint's table of values, so that an id means the same on both sides and
// in every joint graph of one recording. The copies of mutated primals are added behind it in
// forward's table only: two backwards of one forward may come from joints whose tables differ in
// length, so no id past the joint's could mean the same to all of them. They meet in the role.
#include "partition/partition.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/liveness.h"
#include "analysis/value_numbers.h"
#include "graph/refusal.h"
#include "ops/memory_variant.h"
#include "ops/schema.h"

namespace foregrad {
namespace {

std::string value_text(ValueId value) { return "%" + std::to_string(value.index); }

bool can_run_twice(const c10::OperatorHandle& op) {
  return !has_effects(op) || (is_memory_variant(op) && !is_random(op));
}

// ---- backward

class BackwardCut {
 public:
  /// The saved values and the tangents are there.
  BackwardCut(const Graph& joint, const SavedValues& saved, const std::vector<GraphInput>& tangents)
      : joint_(joint),
        producer_(producers(joint)),
        is_there_(joint.values.size()),
        runs_again_(joint.nodes.size()) {
    for (const ValueId value : saved) inputs_.push_back({value, Saved{value}});
    inputs_.insert(inputs_.end(), tangents.begin(), tangents.end());
    for (const GraphInput& input : inputs_) is_there_[input.value.index] = true;
  }

  /// Lets values that equal one that is there be read as that one.
  void use_equals() {
    first_equal_ = first_equals(joint_);
    for (const GraphInput& input : inputs_)
      there_.emplace(first_equal_[input.value.index], input.value);
  }

  void need_backward_nodes() {
    takes_backward_nodes_ = true;
    for (const Node& node : joint_.nodes) {
      if (node.phase == Phase::Backward)
        for_each_read(node, [this](ValueId value) { need(value); });
    }
  }

  Graph cut(std::vector<GraphOutput> outputs) {
    for (const GraphOutput& output : outputs) {
      if (output.value) need(*output.value);
    }
    return collect(std::move(outputs));
  }

 private:
  ValueId standing_for(ValueId value) const {
    if (is_there_[value.index] || first_equal_.empty()) return value;
    const auto found = there_.find(first_equal_[value.index]);
    return found == there_.end() ? value : found->second;
  }

  void need(ValueId value) {
    if (is_there_[standing_for(value).index]) return;
    path_.push_back(value);
    const auto id = producer_[value.index];
    TORCH_CHECK(id, "partition: backward needs primal ", value_text(value),
                ", which is not saved, for ", path_text(),
                ": save it, or a value between it and backward");
    const Node& node = joint_.node(*id);
    if (node.phase == Phase::Forward && !runs_again_[id->index]) {
      TORCH_CHECK(can_run_twice(node.op), "partition: backward needs ", value_text(value),
                  ", which is not saved, for ", path_text(), ", and `", operator_text(node.op),
                  "` can't run twice: save the value");
      runs_again_[id->index] = true;
      for_each_read(node, [this](ValueId read) { need(read); });
    }
    path_.pop_back();
  }

  // From the value that backward reads to the one that is missing.
  std::string path_text() const {
    std::string text;
    for (const ValueId value : path_) text += (text.empty() ? "" : " <- ") + value_text(value);
    return text;
  }

  Graph collect(std::vector<GraphOutput> outputs) const {
    Graph backward;
    backward.values = joint_.values;
    backward.inputs = inputs_;
    backward.nodes.reserve(joint_.nodes.size());
    for (uint32_t i = 0; i < joint_.nodes.size(); ++i) {
      if (joint_.nodes[i].phase == Phase::Backward) {
        if (takes_backward_nodes_) backward.nodes.push_back(with_equals(joint_.nodes[i]));
      } else if (runs_again_[i]) {
        backward.nodes.push_back(again(with_equals(joint_.nodes[i]), backward));
      }
    }
    for (GraphOutput& output : outputs) {
      if (output.value) output.value = standing_for(*output.value);
    }
    backward.outputs = std::move(outputs);
    return backward;
  }

  Node with_equals(Node node) const {
    if (first_equal_.empty()) return node;
    for_each_read(node, [&](ValueId& value) { value = standing_for(value); });
    return node;
  }

  // A node that runs again may define a value that is saved too (the other half of a split): the
  // saved one keeps the id.
  Node again(Node node, Graph& backward) const {
    node.phase = Phase::Backward;
    for_each_definition(node, [&](ValueId& value) {
      if (is_there_[value.index]) value = add_value(backward, TensorType(joint_.type(value)));
    });
    return node;
  }

  const Graph& joint_;
  std::vector<GraphInput> inputs_;
  bool takes_backward_nodes_ = false;
  std::vector<ValueId> first_equal_;  // by ValueId; empty: equal values are not looked for
  std::map<ValueId, ValueId> there_;  // by first equal
  std::vector<std::optional<NodeId>> producer_;
  std::vector<bool> is_there_;    // by ValueId: an input of the cut
  std::vector<bool> runs_again_;  // by NodeId
  std::vector<ValueId> path_;     // from what backward reads to the value in question
};

// ---- forward

// The values that must not be saved as they are: those in the memory of a primal that the call
// writes.
std::vector<bool> values_written_after(const Graph& joint) {
  const AliasClasses classes(joint);
  std::vector<bool> class_written(joint.values.size());
  for (const GraphInput& input : joint.inputs) {
    const auto primal = primal_of(input.role);
    if (!primal) continue;
    for (const GraphOutput& output : joint.outputs) {
      const auto* mutated = std::get_if<MutatedInput>(&output.role);
      if (mutated && mutated->of == *primal) class_written[classes.of(input.value).index] = true;
    }
  }
  std::vector<bool> written(joint.values.size());
  for (uint32_t i = 0; i < written.size(); ++i) written[i] = class_written[classes.of({i}).index];
  return written;
}

c10::OperatorHandle find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

Node call(const c10::OperatorHandle& op, std::vector<Operand> args, ValueId result) {
  const auto& parameters = op.schema().arguments();
  for (size_t i = args.size(); i < parameters.size(); ++i)
    args.emplace_back(parameters[i].default_value().value());
  return {.op = op, .args = std::move(args), .results = {result}};
}

// Appends a node that copies the value with its sizes, strides and offset.
ValueId save_a_copy(Graph& forward, ValueId value) {
  const TensorType type = forward.type(value);
  if (type.is_conj || type.is_neg) {
    throw Refusal(
        "a tensor with the lazy conjugate or negative bit is mutated and its value from "
        "before is needed in backward (" +
        to_text(type) + "): call `resolve_conj()` or `resolve_neg()` on it first");
  }
  const ValueId copy = add_value(forward, type);
  // `copy` clones the memory that its first argument spans, offset and gaps included, and then
  // writes the second argument into it; `clone` closes gaps.
  forward.nodes.push_back(type.storage_offset == 0 && type.is_dense_and_non_overlapping()
                              ? call(find_operator("aten::clone"), {value}, copy)
                              : call(find_operator("aten::copy"), {value, value}, copy));
  return copy;
}

void check_saved_values(const Graph& joint, const SavedValues& saved) {
  std::vector<bool> is_forward(joint.values.size());
  for (const GraphInput& input : joint.inputs)
    is_forward[input.value.index] = primal_of(input.role).has_value();
  for (const Node& node : joint.nodes) {
    if (node.phase == Phase::Backward) continue;
    for_each_definition(node, [&](ValueId value) { is_forward[value.index] = true; });
  }
  for (size_t i = 0; i < saved.size(); ++i) {
    TORCH_CHECK(i == 0 || saved[i - 1].index < saved[i].index,
                "partition: saved values ascend, each once: expected one after ",
                value_text(saved[i - 1]), ", got ", value_text(saved[i]));
    TORCH_CHECK(saved[i].index < is_forward.size() && is_forward[saved[i].index],
                "partition: expected a saved value that forward defines or a primal, got ",
                value_text(saved[i]));
  }
}

std::vector<GraphInput> inputs_of_backward(const Graph& joint) {
  std::vector<GraphInput> inputs;
  for (const GraphInput& input : joint.inputs) {
    if (belongs_to_backward(input.role)) inputs.push_back(input);
  }
  return inputs;
}

std::vector<GraphOutput> outputs_of_backward(const Graph& joint) {
  std::vector<GraphOutput> outputs;
  for (const GraphOutput& output : joint.outputs) {
    if (belongs_to_backward(output.role)) outputs.push_back(output);
  }
  return outputs;
}

// The backward nodes and what they need.
Graph cut_phase(const Graph& joint, const SavedValues& saved, bool uses_equals) {
  check_saved_values(joint, saved);
  BackwardCut backward(joint, saved, inputs_of_backward(joint));
  if (uses_equals) backward.use_equals();
  backward.need_backward_nodes();
  return backward.cut(outputs_of_backward(joint));
}

}  // namespace

Graph cut_forward(const Graph& joint, const SavedValues& saved) {
  check_saved_values(joint, saved);
  Graph forward;
  forward.values = joint.values;
  for (const GraphInput& input : joint.inputs) {
    if (!belongs_to_backward(input.role)) forward.inputs.push_back(input);
  }
  const auto is_forward = [](const Node& node) { return node.phase == Phase::Forward; };
  forward.nodes.reserve(static_cast<size_t>(std::ranges::count_if(joint.nodes, is_forward)) +
                        saved.size());
  std::ranges::copy_if(joint.nodes, std::back_inserter(forward.nodes), is_forward);
  for (const GraphOutput& output : joint.outputs) {
    if (!belongs_to_backward(output.role)) forward.outputs.push_back(output);
  }
  const std::vector<bool> written_after = values_written_after(joint);
  for (const ValueId value : saved) {
    const ValueId kept = written_after[value.index] ? save_a_copy(forward, value) : value;
    forward.outputs.push_back({kept, Saved{value}});
  }
  return forward;
}

Graph cut_backward(const Graph& joint, const SavedValues& saved) {
  return cut_phase(joint, saved, /*uses_equals=*/false);
}

Partition partition(const Graph& joint, const SavedValues& saved) {
  return {.forward = cut_forward(joint, saved), .backward = cut_backward(joint, saved)};
}

Graph cut_gradients(const Graph& joint, const SavedValues& before,
                    const std::vector<InputIndex>& tangents, const SavedValues& after) {
  check_saved_values(joint, after);
  std::vector<GraphInput> given;
  for (const GraphInput& input : joint.inputs) {
    const auto primal = primal_of(input.role);
    if (primal && std::ranges::find(tangents, *primal) != tangents.end()) given.push_back(input);
  }
  std::vector<GraphOutput> outputs;
  for (const GraphOutput& output : joint.outputs) {
    if (std::holds_alternative<UserOutput>(output.role)) outputs.push_back(output);
  }
  for (const ValueId value : after) outputs.push_back({value, Saved{value}});
  BackwardCut gradients(joint, before, given);
  gradients.use_equals();
  return gradients.cut(std::move(outputs));
}

Graph cut_last_gradients(const Graph& joint, const SavedValues& saved) {
  return cut_phase(joint, saved, /*uses_equals=*/true);
}

}  // namespace foregrad
