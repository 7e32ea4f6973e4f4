#include "api/derivatives.h"

#include <algorithm>
#include <set>
#include <utility>

#include "analysis/liveness.h"
#include "api/backend.h"
#include "passes/pipeline.h"

namespace foregrad::detail {

namespace {

template <class T>
std::optional<uint32_t> place_of(const std::vector<T>& list, const T& item) {
  const auto found = std::ranges::find(list, item);
  if (found == list.end()) return std::nullopt;
  return static_cast<uint32_t>(found - list.begin());
}

GradientRound round_of(const std::vector<Differentiable>& tangents, const TangentLayout& layout) {
  GradientRound round{.of = {}, .autocast = layout.autocast};
  for (size_t i = 0; i < tangents.size(); ++i) {
    if (!layout.strides[i]) continue;
    round.of.push_back(tangents[i]);
    round.strides.push_back(*layout.strides[i]);
  }
  return round;
}

std::vector<GradientRound> operator+(std::vector<GradientRound> rounds, GradientRound round) {
  rounds.push_back(std::move(round));
  return rounds;
}

JointTrace trace(const Derivatives& node, const std::vector<GradientRound>& rounds) {
  return trace_rounds(*node.recording, node.meta, rounds, node.cuts);
}

/// Gradients of gradients may lead to what the first ones were taken of: a result that is saved.
GradientCuts cuts_of_gradients(const Derivatives& node) {
  GradientCuts cuts = node.cuts;
  if (!node.earlier.empty()) return cuts;
  cuts.later = node.tangents;
  return cuts;
}

const GraphCompiler& compiler_of(const Derivatives& node) {
  return compiler_for(GraphUse::Backward, node.backend.get());
}

std::span<const Pass> higher_passes(const Derivatives& node) {
  return compiler_of(node) ? functional_final_passes() : higher_final_passes();
}

Graph backward_graph(const Derivatives& node, Graph joint) {
  if (node.earlier.empty()) {
    const Graph graph = run_passes(masked_joint_passes(), std::move(joint));
    return run_passes(passes_before(compiler_of(node)), cut_backward(graph, node.saved));
  }
  const Graph graph = run_passes(higher_joint_passes(), std::move(joint));
  return run_passes(higher_passes(node), cut_last_gradients(graph, node.saved));
}

/// Compiles the backward of a node for any layout of its tangents.
Backward compile_backward(const Derivatives& node, const TangentLayout& layout) {
  JointTrace joint = trace(node, node.earlier + round_of(node.tangents, layout));
  if (joint.gradient_error) {
    return {.run = {}, .saved = {}, .tangents = {}, .error = joint.gradient_error};
  }
  Backward backward = make_backward(backward_graph(node, std::move(joint.graph)),
                                    node.differentiated, compiler_of(node), joint.late_advances);
  backward.unchanged = node.earlier.empty() ? joint.read_by_backward : node.unchanged;
  return backward;
}

/// Compiles a backward whose gradients can be differentiated, and what they are differentiated by.
class DifferentiableCompiler {
 public:
  DifferentiableCompiler(const Derivatives& node, const TangentLayout& layout,
                         const std::vector<bool>& requires_grad)
      : node_(node), cuts_(cuts_of_gradients(node)) {
    first_later_cut_ = static_cast<uint32_t>(node.recording->inputs.size() + cuts_.always.size());
    first_tangent_ = first_later_cut_ + static_cast<uint32_t>(cuts_.later.size());
    for (const GradientRound& round : node.earlier)
      first_tangent_ += static_cast<uint32_t>(round.of.size());
    GradientRound round = round_of(node.tangents, layout);
    for (size_t i = 0; i < layout.strides.size(); ++i) {
      if (layout.strides[i]) round.requires_grad.push_back(requires_grad[i]);
    }
    tangent_count_ = static_cast<uint32_t>(round.of.size());
    rounds_ = node.earlier + std::move(round);
  }

  DifferentiableBackward compile() {
    // Which gradients require grad is known only after a trace.
    const auto requires_grad = trace_next(GradientRound{}).differentiable;
    GradientRound last;
    for (const InputIndex input : requires_grad) {
      if (place_of(node_.differentiated, input)) last.of.emplace_back(UserOutput{{input.index}});
    }
    JointTrace joint = trace_next(last);
    const bool is_erroneous = joint.gradient_error != nullptr;
    joint_ = run_passes(higher_joint_passes(), std::move(joint.graph));

    Derivatives next{.recording = node_.recording,
                     .meta = node_.meta,
                     .cuts = cuts_,
                     .earlier = rounds_,
                     .tangents = last.of,
                     .types = tangent_types(joint_),
                     .saved = {},
                     .recoverable = {},
                     .unchanged = node_.earlier.empty()
                                      ? trace(node_, {rounds_.front()}).read_by_backward
                                      : node_.unchanged,
                     .differentiated = {},
                     .backend = node_.backend};
    next.saved = is_erroneous ? choose_saved_for_each(next) : choose_saved_values(joint_);
    const Graph gradients = run_passes(higher_passes(node_), cut(next.saved));

    DifferentiableBackward made;
    made.backward = make_backward(gradients, node_.differentiated, compiler_of(node_));
    made.backward.unchanged = next.unchanged;
    choose_differentiable(gradients, next, made);
    find_saved(gradients, made);
    find_edges(is_erroneous, next, made);
    made.next = make_backwards(std::move(next), std::nullopt);
    return made;
  }

 private:
  JointTrace trace_next(GradientRound round) const {
    return trace_rounds(*node_.recording, node_.meta, rounds_ + std::move(round), cuts_);
  }

  /// From the node's saved values and tangents to a gradient for each of its edges, and what the
  /// next node saves.
  Graph cut(const SavedValues& saved) const {
    std::vector<InputIndex> tangents;
    for (uint32_t i = 0; i < tangent_count_; ++i) tangents.push_back({first_tangent_ + i});
    SavedValues before = node_.saved;
    before.insert(before.end(), node_.recoverable.begin(), node_.recoverable.end());
    Graph graph = cut_gradients(joint_, before, tangents, saved);
    std::vector<GraphOutput> outputs;
    for (const InputIndex input : node_.differentiated) {
      const OutputRole role = UserOutput{{input.index}};
      const auto found = std::ranges::find(graph.outputs, role, &GraphOutput::role);
      outputs.push_back({found == graph.outputs.end() ? std::nullopt : found->value, role});
    }
    for (const GraphOutput& output : graph.outputs) {
      if (std::holds_alternative<Saved>(output.role)) outputs.push_back(output);
    }
    graph.outputs = std::move(outputs);
    return graph;
  }

  /// A tangent that is handed on keeps its own history; a gradient that goes to several inputs has
  /// one.
  void choose_differentiable(const Graph& gradients, Derivatives& next,
                             DifferentiableBackward& made) {
    for (const GraphInput& input : gradients.inputs) has_history_.insert(input.value);
    std::vector<Differentiable> tangents;
    std::vector<TensorType> types;
    for (size_t i = 0; i < next.tangents.size(); ++i) {
      const OutputIndex output = std::get<UserOutput>(next.tangents[i]).output;
      const uint32_t place = *place_of(node_.differentiated, InputIndex{output.index});
      const auto value = gradients.outputs[place].value;
      if (!value || !has_history_.insert(*value).second) continue;
      made.differentiable.push_back(place);
      given_.insert(*value);
      tangents.push_back(next.tangents[i]);
      types.push_back(next.types[i]);
    }
    next.tangents = std::move(tangents);
    next.types = std::move(types);
  }

  void find_saved(const Graph& gradients, DifferentiableBackward& made) const {
    const auto in_outputs = saved_in_outputs(gradients);
    const auto& outputs = gradients.outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!std::holds_alternative<Saved>(outputs[i].role)) continue;
      SavedResult saved{.position = i, .is_output = given_.contains(*outputs[i].value)};
      if (const auto found = in_outputs.find(*outputs[i].value); found != in_outputs.end())
        saved.in_output = found->second;
      made.saved.push_back(saved);
    }
  }

  void find_edges(bool is_erroneous, Derivatives& next, DifferentiableBackward& made) const {
    for (const InputIndex input : differentiated_inputs(joint_, is_erroneous)) {
      if (input.index >= first_tangent_) {
        made.edges.push_back({EdgeOf::Tangent, input.index - first_tangent_});
      } else if (const auto own = place_of(node_.differentiated, input)) {
        made.edges.push_back({EdgeOf::Edge, *own});
      } else if (input.index >= first_later_cut_) {
        const Differentiable& output = cuts_.later[input.index - first_later_cut_];
        made.edges.push_back({EdgeOf::Output, *place_of(node_.tangents, output)});
      } else {
        continue;
      }
      next.differentiated.push_back(input);
    }
  }

  using EdgeOf = DifferentiableBackward::EdgeOf;

  const Derivatives& node_;
  const GradientCuts cuts_;
  uint32_t first_later_cut_ = 0;
  uint32_t first_tangent_ = 0;  // number of the node's first tangent among the inputs
  uint32_t tangent_count_ = 0;  // of those that are defined
  std::vector<GradientRound> rounds_;
  Graph joint_;
  std::set<ValueId> has_history_;
  std::set<ValueId> given_;  // gradients that get the next node as their history
};

}  // namespace

std::vector<TensorType> tangent_types(const Graph& joint) {
  std::vector<TensorType> types;
  for (const GraphInput& input : joint.inputs) {
    if (std::holds_alternative<Tangent>(input.role)) types.push_back(joint.type(input.value));
  }
  return types;
}

std::vector<InputIndex> differentiated_inputs(const Graph& joint, bool all) {
  std::vector<InputIndex> inputs;
  for (const GraphOutput& output : joint.outputs) {
    if (const auto* grad = std::get_if<Grad>(&output.role); grad && (output.value || all))
      inputs.push_back(grad->of);
  }
  return inputs;
}

SavedValues choose_saved_for_each(const Derivatives& derivatives) {
  std::set<ValueId> saved;
  for (const Differentiable& tangent : derivatives.tangents) {
    JointTrace joint = trace(derivatives, derivatives.earlier + GradientRound{.of = {tangent}});
    if (joint.gradient_error) continue;
    const auto passes = derivatives.earlier.empty() ? masked_joint_passes() : higher_joint_passes();
    const SavedValues own = choose_saved_values(run_passes(passes, std::move(joint.graph)));
    saved.insert(own.begin(), own.end());
  }
  return {saved.begin(), saved.end()};
}

Backward make_backward(Graph graph, const std::vector<InputIndex>& differentiated,
                       const GraphCompiler& compiler, const std::vector<uint32_t>& late_advances) {
  std::vector<bool> is_read(graph.values.size());
  for (const Node& node : graph.nodes)
    for_each_read(node, [&](ValueId value) { is_read[value.index] = true; });
  for (const GraphOutput& output : graph.outputs) {
    if (output.value) is_read[output.value->index] = true;
  }
  std::erase_if(graph.outputs, [&](const GraphOutput& output) {
    const auto* grad = std::get_if<Grad>(&output.role);
    return grad && !place_of(differentiated, grad->of);
  });
  std::vector<GraphInput> inputs;
  std::vector<uint32_t> saved;
  std::vector<TensorType> tangents;
  std::vector<InputRole> tangent_roles;
  std::vector<Backward::Late> late;
  uint32_t saved_count = 0;
  for (const GraphInput& input : graph.inputs) {
    if (std::holds_alternative<Saved>(input.role)) {
      const uint32_t index = saved_count++;
      if (!is_read[input.value.index]) continue;
      saved.push_back(index);
    } else if (const auto* later = std::get_if<LateInput>(&input.role)) {
      late.push_back({later->input, graph.type(input.value)});
    } else {
      tangent_roles.push_back(input.role);
      tangents.push_back(graph.type(input.value));
    }
    inputs.push_back(input);
  }
  std::stable_partition(inputs.begin(), inputs.end(), [](const GraphInput& input) {
    return !std::holds_alternative<LateInput>(input.role);
  });
  graph.inputs = std::move(inputs);
  std::vector<Backward::Write> writes;
  for (const GraphOutput& output : graph.outputs) {
    if (const auto* write = std::get_if<LateWrite>(&output.role)) {
      writes.push_back({write->of, std::nullopt, late_advances.at(writes.size())});
    } else if (const auto* written = std::get_if<TangentWrite>(&output.role)) {
      writes.push_back({std::nullopt, place_of(tangent_roles, InputRole(Tangent{written->of})),
                        late_advances.at(writes.size())});
    }
  }
  return {.run = compile_graph(compiler, graph),
          .saved = std::move(saved),
          .tangents = std::move(tangents),
          .late = std::move(late),
          .writes = std::move(writes)};
}

std::shared_ptr<BackwardSource> make_backwards(Derivatives derivatives,
                                               std::optional<Backward> traced) {
  const auto node = std::make_shared<const Derivatives>(std::move(derivatives));
  BackwardMaker maker{
      .backward = [node](const TangentLayout& layout) { return compile_backward(*node, layout); },
      .differentiable =
          [node](const TangentLayout& layout, const std::vector<bool>& requires_grad) {
            return DifferentiableCompiler(*node, layout, requires_grad).compile();
          }};
  return std::make_shared<Backwards>(node->types, std::move(maker), std::move(traced),
                                     node->autocast);
}

}  // namespace foregrad::detail
