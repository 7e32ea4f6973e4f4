#include "api/compilation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <set>
#include <unordered_set>

#include "analysis/arrangement.h"
#include "analysis/liveness.h"
#include "analysis/views_and_mutations.h"
#include "analysis/visible_hooks.h"
#include "api/backend.h"
#include "api/call_trace.h"
#include "api/derivatives.h"
#include "capture/input_facts.h"
#include "capture/outside_state.h"
#include "capture/record_again.h"
#include "capture/recorder.h"
#include "capture/replay.h"
#include "capture/unread_operators.h"
#include "foregrad/state.h"
#include "graph/refusal.h"
#include "ops/offsets.h"
#include "ops/schema.h"
#include "partition/partition.h"
#include "passes/dce.h"
#include "passes/pipeline.h"
#include "runtime/rehearsal.h"

namespace foregrad::detail {

namespace {

/// Times the stages of a compilation.
class Stages {
 public:
  void end(const char* name) {
    const auto now = std::chrono::steady_clock::now();
    stages_.push_back({name, std::chrono::duration<double, std::milli>(now - last_).count()});
    last_ = now;
  }
  std::vector<Report::Stage> take() { return std::move(stages_); }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::vector<Report::Stage> stages_;
};

std::vector<ModuleGuard> guard_modules(const CompileOptions& options) {
  std::vector<ModuleGuard> guards;
  for (const ModuleRef& ref : options.modules) {
    for (const auto& item : ref.get()->named_modules()) {
      guards.push_back({item.value(), item.key().empty() ? item.value()->name() : item.key(),
                        item.value()->is_training()});
    }
  }
  return guards;
}

/// Puts back the flags that the function changed while it was traced, and refuses: only eager can
/// change them at each call.
void restore_training_flags(const std::vector<ModuleGuard>& guards) {
  const ModuleGuard* changed = nullptr;
  for (const ModuleGuard& guard : guards) {
    if (guard.module->is_training() == guard.training) continue;
    guard.module->train(guard.training);
    changed = &guard;
  }
  if (!changed) return;
  // `train` reaches submodules: the innermost come last.
  for (const ModuleGuard& guard : guards) guard.module->train(guard.training);
  throw Refusal(fmt::format(
      "the function changes the mode of module `{}`. Call `train()` and `eval()` outside of it.",
      changed->name));
}

/// Says whether a captured tensor was declared: it is in a declared module or list.
class Declared {
 public:
  explicit Declared(const CompileOptions& options) : tensors_(options.tensors) {
    for (const ModuleRef& ref : options.modules) {
      for (const auto& tensor : ref.get()->parameters()) tensors_.push_back(tensor);
      for (const auto& tensor : ref.get()->buffers()) tensors_.push_back(tensor);
    }
    for (const auto& tensor : tensors_) impls_.insert(tensor.unsafeGetTensorImpl());
  }
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  bool contains(const at::Tensor& tensor) const {
    return impls_.contains(tensor.unsafeGetTensorImpl()) || is_state(tensor);
  }

 private:
  std::vector<at::Tensor> tensors_;
  std::unordered_set<const c10::TensorImpl*> impls_;
};

/// An argument that the function also captures must be that very tensor.
void fix_captured_arguments(Compilation& made, const Leaves& leaves) {
  for (const RecordedInput& input : made.recording->inputs) {
    if (!std::holds_alternative<UserInput>(input.role) || !input.tensor.defined()) continue;
    for (size_t i = 0; i < leaves.tensors.size(); ++i) {
      if (input.tensor.is_same(*leaves.tensors[i]))
        made.fixed_arguments.emplace_back(i, input.tensor);
    }
  }
}

/// Effects that would not leave what eager left are not brought about.
void rehearse_effects(const ViewAndMutationMeta& meta, const Graph& joint) {
  std::vector<TensorType> base_types(meta.bases.size());
  for (const GraphOutput& output : joint.outputs) {
    if (const auto* base = std::get_if<IntermediateBase>(&output.role))
      base_types[base->base.index] = joint.type(*output.value);
  }
  if (const auto difference = rehearse(meta, base_types)) {
    throw Refusal(fmt::format(
        "what the function does to its inputs and outputs can't be done again: {}", *difference));
  }
}

Arrangement arrange_for_any_writes(const std::vector<at::Tensor>& arguments) {
  const auto facts = gather_inputs(arguments).facts;
  return arrange(facts, std::vector<InputWrites>(arguments.size(), any_writes()), false);
}

/// The primals that a backward could be given but for being saved: tensors that the caller holds
/// and the call does not write.
std::vector<InputIndex> unsaved_primals(const Graph& joint, const SavedValues& saved) {
  std::vector<InputIndex> primals;
  for (const GraphInput& input : joint.inputs) {
    const bool is_callers =
        std::holds_alternative<UserInput>(input.role) || std::holds_alternative<Lifted>(input.role);
    if (!is_callers || std::ranges::binary_search(saved, input.value)) continue;
    const InputIndex primal = *primal_of(input.role);
    const bool is_written = std::ranges::any_of(joint.outputs, [&](const GraphOutput& output) {
      return output.role == OutputRole(MutatedInput{primal});
    });
    if (!is_written) primals.push_back(primal);
  }
  return primals;
}

/// Compiles the backward of one node, for all of its tangents together.
class NodeBuilder {
 public:
  NodeBuilder(const Compilation& made, HistoryStage stage, std::set<uint32_t> other_hooks) {
    node_ = {.recording = made.recording,
             .meta = made.meta,
             .cuts = {.always = std::move(stage.cuts),
                      .later = {},
                      .other_hooks = std::move(other_hooks)},
             .earlier = {},
             .tangents = std::move(stage.tangents),
             .types = {},
             .saved = {},
             .recoverable = {},
             .unchanged = {},
             .differentiated = {},
             .backend = made.backend,
             .autocast = made.backward_autocast.value_or(AutocastState())};
  }

  /// Chooses what the node saves. `joint`: the trace of its gradients; `passes`: those over it.
  /// Returns the graph after the passes.
  Graph choose_saved(JointTrace joint, std::span<const Pass> passes,
                     std::vector<PassRecord>& records) {
    is_erroneous_ = joint.gradient_error != nullptr;
    saved_by_eager_ = choose_saved_values(joint.graph);
    unchanged_ = std::move(joint.read_by_backward);
    late_advances_ = std::move(joint.late_advances);
    Graph graph = run_passes(passes, std::move(joint.graph), records);
    node_.types = tangent_types(graph);
    node_.differentiated = differentiated_inputs(graph, is_erroneous_);
    node_.saved = is_erroneous_ ? choose_saved_for_each(node_)
                                : detail::choose_saved(graph, node_.backend.get());
    return graph;
  }

  const GradientCuts& cuts() const { return node_.cuts; }
  const SavedValues& saved() const { return node_.saved; }
  /// Whether gradients of gradients may need what is not saved.
  bool saves_less_than_eager() const {
    return !std::ranges::includes(node_.saved, saved_by_eager_);
  }

  /// `joint`: the graph after the passes. `backward`: its backward. `saved`: by all nodes of the
  /// call, ascending.
  NodeParts finish(const Graph& joint, const Graph& backward, const SavedValues& saved,
                   const std::vector<InputIndex>& kept_weakly) {
    std::optional<Backward> traced;
    const Backend* backend = node_.backend.get();
    const bool is_lazy = backend && backend->backward && backend->has_lazy_backward;
    if (!node_.tangents.empty() && !is_erroneous_ && !is_lazy) {
      traced = make_backward(backward, node_.differentiated,
                             compiler_for(GraphUse::Backward, backend), late_advances_);
      traced->unchanged = std::move(unchanged_);
    }
    for (const GraphInput& input : joint.inputs) {
      const auto primal = primal_of(input.role);
      if (primal && std::ranges::find(kept_weakly, *primal) != kept_weakly.end())
        node_.recoverable.push_back(input.value);
    }
    NodeParts parts{.tangents = node_.tangents,
                    .cuts = node_.cuts.always,
                    .differentiated = node_.differentiated};
    for (const ValueId value : node_.saved)
      parts.saved.push_back(std::ranges::lower_bound(saved, value) - saved.begin());
    parts.backwards = make_backwards(std::move(node_), std::move(traced));
    return parts;
  }

 private:
  Derivatives node_;
  SavedValues saved_by_eager_;
  std::vector<Slot> unchanged_;
  std::vector<uint32_t> late_advances_;
  bool is_erroneous_ = false;
};

/// What custom functions keep without a check.
std::vector<InputIndex> late_inputs(const Recording& recording, const ViewAndMutationMeta& meta) {
  std::vector<InputIndex> late;
  for (uint32_t i = 0; i < recording.inputs.size(); ++i) {
    const bool is_kept = std::ranges::any_of(recording.nodes, [&](const auto& node) {
      return std::ranges::any_of(node->saved, [&](const auto& saved) {
        return saved.value == recording.inputs[i].value && !saved.is_checked;
      });
    });
    if (is_kept && meta.inputs[i].may_be_late()) late.push_back({i});
  }
  return late;
}

/// What a call needs of a graph that is compiled.
Graph without_nodes(const Graph& graph) {
  return {.values = graph.values, .nodes = {}, .inputs = graph.inputs, .outputs = graph.outputs};
}

bool is_written_as_a_whole(const InputInfo& info) {
  return info.is_written_back() && info.written_parts.empty() && !info.metadata_mutated &&
         !info.storage_changed && info.type.is_dense_and_non_overlapping();
}

void build(Compilation& made, Stages& stages) {
  const OutsideInferenceMode outside;
  std::vector<PassRecord> passes;
  const AutocastState autocast = made.backward_autocast.value_or(AutocastState());
  auto [joint, history_stages, hooks] = trace_call(*made.recording, made.meta, autocast);
  for (const auto& [op, count] : joint.last_resort_shapes) made.last_resort_shapes[op] += count;
  stages.end("joint");
  check_unread_operators(joint.graph, unread_nodes(joint.graph));
  rehearse_effects(made.meta, joint.graph);
  const bool is_erroneous = joint.gradient_error != nullptr;
  std::vector<NodeBuilder> nodes;
  std::vector<Graph> joints;  // of the nodes; none: the one node's is that of the call
  if (history_stages.size() == 1 && history_stages.front().cuts.empty()) {
    // Which forward values the backwards of some tangents read is not known where that of all
    // together is an error.
    nodes.emplace_back(made, history_stages.front(), std::set<uint32_t>());
    made.joint = nodes[0].choose_saved(
        std::move(joint), is_erroneous ? masked_joint_passes() : joint_passes(), passes);
  } else {
    made.joint = run_passes(masked_joint_passes(), std::move(joint.graph), passes);
    for (size_t i = 0; i < history_stages.size(); ++i) {
      const HistoryStage& stage = history_stages[i];
      nodes.emplace_back(made, stage, hooks.others(i));
      JointTrace own =
          trace_rounds(*made.recording, made.meta, {{.of = stage.tangents, .autocast = autocast}},
                       nodes.back().cuts());
      joints.push_back(nodes.back().choose_saved(std::move(own), masked_joint_passes(), passes));
    }
  }
  stages.end("passes");
  SavedValues saved;
  for (const NodeBuilder& node : nodes) {
    SavedValues more;
    std::ranges::set_union(saved, node.saved(), std::back_inserter(more));
    saved = std::move(more);
  }
  const bool keeps_weakly = std::ranges::any_of(nodes, &NodeBuilder::saves_less_than_eager);
  const auto kept_weakly =
      keeps_weakly ? unsaved_primals(made.joint, saved) : std::vector<InputIndex>();
  made.forward = cut_forward(made.joint, saved);
  const auto joint_of = [&](size_t i) -> const Graph& {
    return joints.empty() ? made.joint : joints[i];
  };
  for (size_t i = 0; i < nodes.size(); ++i)
    made.backwards.push_back(cut_backward(joint_of(i), nodes[i].saved()));
  stages.end("partition");
  const bool is_inference = made.meta.tangents().empty();
  const GraphCompiler& compiler =
      compiler_for(is_inference ? GraphUse::Inference : GraphUse::Forward, made.backend.get());
  made.forward = run_passes(passes_before(compiler), std::move(made.forward), passes);
  if (is_inference && made.backend && made.backend->keeps_mutations) {
    made.forward = keep_mutations(std::move(made.forward), [&](InputIndex input) {
      return is_written_as_a_whole(made.meta.inputs[input.index]);
    });
  }
  std::vector<NodeParts> parts;
  for (size_t i = 0; i < nodes.size(); ++i) {
    made.backwards[i] =
        run_passes(passes_before(compiler_for(GraphUse::Backward, made.backend.get())),
                   std::move(made.backwards[i]), passes);
    parts.push_back(nodes[i].finish(joint_of(i), made.backwards[i], saved, kept_weakly));
    parts.back().autocast = made.backward_autocast;
  }
  stages.end("final passes");
  SpecialisationParts runtime{
      .meta = made.meta,
      .forward = without_nodes(made.forward),
      .run_forward = compile_graph(compiler, made.forward),
      .lifted = made.lifted,
      .draws_random = std::ranges::any_of(made.joint.nodes,
                                          [](const Node& node) { return is_random(node.op); }),
      .saved_in_outputs = saved_in_outputs(made.forward),
      .kept_weakly = kept_weakly,
      .late = late_inputs(*made.recording, made.meta),
      .nodes = std::move(parts)};
  made.specialisation = std::make_shared<Specialisation>(std::move(runtime));
  stages.end("plan");
}

std::string plain_text(const PlainLeaf& leaf) {
  switch (leaf.kind) {
    case PlainLeaf::Kind::Bool: return leaf.bits ? "true" : "false";
    case PlainLeaf::Kind::Integer: return std::to_string(static_cast<int64_t>(leaf.bits));
    case PlainLeaf::Kind::Float:
    case PlainLeaf::Kind::Complex: return fmt::format("{}", std::bit_cast<double>(leaf.bits));
    case PlainLeaf::Kind::Text: return fmt::format("'{}'", static_cast<char>(leaf.bits));
  }
  return {};
}

}  // namespace

bool Compilation::is_valid_for(const Leaves& leaves) const {
  if (leaves.plain != plain) return false;
  for (const ModuleGuard& guard : modules) {
    if (guard.module->is_training() != guard.training) return false;
  }
  for (const auto& [number, tensor] : fixed_arguments) {
    if (number >= leaves.tensors.size() || !leaves.tensors[number]->is_same(tensor)) return false;
  }
  return guards->hold(leaves.tensors);
}

std::string Compilation::why_invalid(const Leaves& leaves) const {
  for (size_t i = 0; i < std::min(leaves.plain.size(), plain.size()); ++i) {
    if (!(leaves.plain[i] == plain[i])) {
      return fmt::format(
          "plain argument {} is {}; was {} (a number is part of the compiled function: pass one "
          "that "
          "changes often as a zero-dimensional tensor)",
          i, plain_text(leaves.plain[i]), plain_text(plain[i]));
    }
  }
  if (leaves.plain.size() != plain.size()) return "the arguments have another structure";
  for (const ModuleGuard& guard : modules) {
    if (guard.module->is_training() != guard.training) {
      return fmt::format("module `{}` is in {} mode; was in {} mode", guard.name,
                         guard.training ? "evaluation" : "training",
                         guard.training ? "training" : "evaluation");
    }
  }
  if (auto failure = guards->explain(leaves.tensors)) return *failure;
  return "an argument is no longer the tensor that the function also captures";
}

Recorded record_call(const Leaves& leaves, BoundFunction& function, const CompileOptions& options,
                     const OnUndeclared& on_undeclared) {
  const Declared declared(options);
  RecordRequest request;
  for (const at::Tensor* tensor : leaves.tensors) request.arguments.push_back(*tensor);
  std::shared_ptr<const void> prototype;
  request.run = [&](const std::vector<at::Tensor>& stand_ins) {
    TracedResult result = function.trace(stand_ins);
    if (result.reassigns_argument) {
      throw Refusal(
          "the function gives another value to an argument that it takes by reference. Expected "
          "arguments that are only "
          "written in place. Return the value.");
    }
    prototype = std::move(result.prototype);
    return std::move(result.tensors);
  };
  request.declared = declared.tensors();
  request.on_capture = [&](const at::Tensor& tensor, const std::string& op) {
    if (!declared.contains(tensor)) on_undeclared(tensor, op);
  };
  request.arrangement = arrange_for_any_writes(distinct_tensors(request.arguments));
  const auto flags = guard_modules(options);
  RecordResult result = record(request);
  restore_training_flags(flags);
  return {std::move(result.recording), std::move(prototype), std::move(result.last_resort_shapes)};
}

namespace {

bool lies_alone(const Arrangement& arrangement) {
  return std::ranges::all_of(arrangement.inputs,
                             [](const Placement& placement) { return placement == Placement(); });
}
bool lies_alone(const Recording& recording) {
  return std::ranges::none_of(
      recording.inputs, [](const RecordedInput& input) { return input.view_of || input.memory; });
}

}  // namespace

std::shared_ptr<const Recording> settle(std::shared_ptr<const Recording> recording,
                                        const Leaves& leaves) {
  constexpr int kMostRounds = 5;
  RecordRequest request;
  for (const at::Tensor* tensor : leaves.tensors) request.arguments.push_back(*tensor);
  for (const RecordedInput& input : recording->inputs) {
    if (std::holds_alternative<Lifted>(input.role)) request.captured.push_back(input.tensor);
  }
  const auto facts = gather_inputs(distinct_inputs(leaves.tensors, request.captured)).facts;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::vector<InputWrites> writes = writes_of(*recording);
    check_leaf_views(facts, writes);
    Arrangement better = arrange(facts, writes, takes_offsets(*recording));
    const bool is_settled =
        round == 0 ? lies_alone(better) && lies_alone(*recording) : better == request.arrangement;
    if (is_settled) return recording;
    request.arrangement = std::move(better);
    recording = std::make_shared<const Recording>(record_again(*recording, request).recording);
  }
  throw Refusal(
      "no arrangement of the inputs in memory agrees with what the function does to them");
}

namespace {

std::optional<AutocastState> fixed_autocast(const BackwardAutocast& autocast) {
  using State = BackwardAutocast::State;
  switch (autocast.state) {
    case State::AsForward: {
      const ModeState modes = current_modes();
      return AutocastState{modes.autocast_enabled, modes.autocast_dtype};
    }
    case State::Off: return AutocastState{};
    case State::On: return AutocastState{true, autocast.dtype};
    case State::AsCalled: break;
  }
  return std::nullopt;
}

Guards::Offsets guarded_offsets(const Recording& recording) {
  if (takes_offsets(recording)) return Guards::Offsets::All;
  return needs_alignment(recording) ? Guards::Offsets::Alignment : Guards::Offsets::None;
}

}  // namespace

std::shared_ptr<Compilation> compile_call(const Leaves& leaves, BoundFunction& function,
                                          const CompileOptions& options,
                                          const OnUndeclared& on_undeclared) {
  Stages stages;
  auto made = std::make_shared<Compilation>();
  made->modules = guard_modules(options);
  made->plain = leaves.plain;
  made->backend = options.backend;
  made->backward_autocast = fixed_autocast(options.backward_autocast);
  Recorded recorded = record_call(leaves, function, options, on_undeclared);
  made->prototype = std::move(recorded.prototype);
  made->last_resort_shapes = std::move(recorded.last_resort_shapes);
  if (options.backend && !options.backend->decompositions.empty()) {
    recorded.recording.decompositions = {options.backend, &options.backend->decompositions};
  }
  stages.end("record");
  made->first_recording = std::make_shared<const Recording>(std::move(recorded.recording));
  made->recording = with_hidden_outputs(settle(made->first_recording, leaves));
  for (const RecordedInput& input : made->recording->inputs) {
    if (std::holds_alternative<Lifted>(input.role)) made->lifted.push_back(input.tensor);
  }
  fix_captured_arguments(*made, leaves);
  made->meta = analyze_views_and_mutations(*made->recording);
  made->guards = std::make_unique<Guards>(leaves.tensors, made->lifted,
                                          guarded_offsets(*made->recording), made->meta.inputs);
  stages.end("analysis");
  build(*made, stages);
  made->stages = stages.take();
  return made;
}

std::shared_ptr<Compilation> refuse_calls_like(const Leaves& leaves, const CompileOptions& options,
                                               std::string reason) {
  auto made = std::make_shared<Compilation>();
  made->modules = guard_modules(options);
  made->plain = leaves.plain;
  made->guards = std::make_unique<Guards>(leaves.tensors, made->lifted);
  made->refusal = std::move(reason);
  return made;
}

}  // namespace foregrad::detail
