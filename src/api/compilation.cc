#include "api/compilation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "analysis/views_and_mutations.h"
#include "capture/recorder.h"
#include "capture/replay.h"
#include "graph/dot.h"
#include "graph/printer.h"
#include "graph/refusal.h"
#include "ops/schema.h"
#include "partition/partition.h"
#include "passes/pipeline.h"

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
  void write(Report::Specialisation& report) const {
    report.stages = stages_;
    for (const auto& stage : stages_) report.compile_ms += stage.ms;
  }

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

/// Says whether a captured tensor was declared: it is in a declared module or list.
class Declared {
 public:
  explicit Declared(const CompileOptions& options) {
    const auto add = [this](const at::Tensor& tensor) {
      tensors_.push_back(tensor.unsafeGetTensorImpl());
    };
    for (const ModuleRef& ref : options.modules) {
      for (const auto& tensor : ref.get()->parameters()) add(tensor);
      for (const auto& tensor : ref.get()->buffers()) add(tensor);
    }
    for (const auto& tensor : options.tensors) add(tensor);
    std::sort(tensors_.begin(), tensors_.end());
  }
  bool contains(const at::Tensor& tensor) const {
    return std::binary_search(tensors_.begin(), tensors_.end(), tensor.unsafeGetTensorImpl());
  }

 private:
  std::vector<const c10::TensorImpl*> tensors_;
};

/// An operator that takes an absolute offset into the storage makes the inputs' offsets matter.
bool takes_offsets(const Recording& recording) {
  return std::ranges::any_of(recording.ops, [](const RecordedOp& op) {
    return std::ranges::any_of(op.op.schema().arguments(), [](const c10::Argument& argument) {
      return argument.name() == "storage_offset";
    });
  });
}

void refuse_shared_writes(const ViewAndMutationMeta& meta, const std::vector<at::Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!meta.inputs[i].data_mutated) continue;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (k == i || !inputs[k].is_alias_of(inputs[i])) continue;
      throw Refusal(
          fmt::format("input {}: the function writes it, and it shares storage with input {}, "
                      "which is not supported yet. "
                      "Expected written inputs with storage of their own. Pass a copy.",
                      i, k));
    }
  }
}

std::string signature_text(const ViewAndMutationMeta& meta, const Graph& forward,
                           const Graph& backward) {
  std::string text = to_text(meta);
  const auto list = [&](const char* what, const auto& entries) {
    text += what;
    for (const auto& entry : entries) text += " " + to_text(entry.role);
    text += "\n";
  };
  list("forward takes", forward.inputs);
  list("forward gives", forward.outputs);
  list("backward takes", backward.inputs);
  list("backward gives", backward.outputs);
  return text;
}

size_t saved_bytes(const Graph& forward) {
  size_t bytes = 0;
  for (const GraphOutput& output : forward.outputs) {
    if (std::holds_alternative<Saved>(output.role))
      bytes += forward.type(*output.value).size_bytes();
  }
  return bytes;
}

/// Makes the backward for one tangent mask from a joint graph.
Backward make_backward(const Graph& joint, Graph backward) {
  std::vector<PassRecord> passes;
  Backward made{.plan = Plan(run_passes(final_passes(), std::move(backward), passes)),
                .tangents = {}};
  for (const GraphInput& input : joint.inputs) {
    if (std::holds_alternative<Tangent>(input.role))
      made.tangents.push_back(joint.type(input.value));
  }
  return made;
}

std::vector<Differentiable> masked(const std::vector<Differentiable>& tangents,
                                   const TangentMask& mask) {
  std::vector<Differentiable> chosen;
  for (size_t i = 0; i < tangents.size(); ++i) {
    if (mask[i]) chosen.push_back(tangents[i]);
  }
  return chosen;
}

void build(Compilation& made, const ViewAndMutationMeta& meta, Stages& stages) {
  std::vector<PassRecord> passes;
  const auto tangents = meta.tangents();
  JointTrace joint = trace_joint(*made.recording, meta, tangents);
  for (const auto& [op, count] : joint.last_resort_shapes)
    made.report.last_resort_shapes[op] += count;
  stages.end("joint");
  joint.graph = run_passes(joint_passes(), std::move(joint.graph), passes);
  stages.end("passes");
  const SavedValues saved = choose_saved_values(joint.graph);
  Partition parts = partition(joint.graph, saved);
  stages.end("partition");
  parts.forward = run_passes(final_passes(), std::move(parts.forward), passes);
  Graph backward = run_passes(final_passes(), std::move(parts.backward), passes);
  stages.end("final passes");
  made.report.signature = signature_text(meta, parts.forward, backward);
  made.report.joint_graph = print_graph(joint.graph);
  made.report.forward_graph = print_graph(parts.forward);
  made.report.backward_graph = print_graph(backward);
  made.report.forward_dot = to_dot(parts.forward, "forward");
  made.report.backward_dot = to_dot(backward, "backward");
  made.report.saved_bytes = saved_bytes(parts.forward);
  stages.end("report");
  made.specialisation = std::make_shared<Specialisation>(SpecialisationParts{
      .meta = meta,
      .forward = std::move(parts.forward),
      .lifted = made.lifted,
      .draws_random = std::ranges::any_of(joint.graph.nodes,
                                          [](const Node& node) { return is_random(node.op); }),
      .make_backward = [recording = made.recording, meta, tangents,
                        saved](const TangentMask& mask) {
        std::vector<PassRecord> unused;
        JointTrace masked_joint = trace_joint(*recording, meta, masked(tangents, mask));
        Graph graph = run_passes(joint_passes(), std::move(masked_joint.graph), unused);
        return make_backward(graph, partition(graph, saved).backward);
      }});
  if (!tangents.empty()) made.specialisation->backward_for(TangentMask(tangents.size(), true));
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
    prototype = std::move(result.prototype);
    return std::move(result.tensors);
  };
  request.on_capture = [&](const at::Tensor& tensor, const std::string& op) {
    if (!declared.contains(tensor)) on_undeclared(tensor, op);
  };
  RecordResult result = record(request);
  return {std::move(result.recording), std::move(prototype), std::move(result.last_resort_shapes)};
}

std::shared_ptr<Compilation> compile_call(const Leaves& leaves, BoundFunction& function,
                                          const CompileOptions& options,
                                          const OnUndeclared& on_undeclared) {
  Stages stages;
  auto made = std::make_shared<Compilation>();
  made->modules = guard_modules(options);
  made->plain = leaves.plain;
  Recorded recorded = record_call(leaves, function, options, on_undeclared);
  made->prototype = std::move(recorded.prototype);
  made->report.last_resort_shapes = std::move(recorded.last_resort_shapes);
  stages.end("record");
  made->recording = std::make_shared<const Recording>(std::move(recorded.recording));
  for (const RecordedInput& input : made->recording->inputs) {
    if (std::holds_alternative<Lifted>(input.role)) made->lifted.push_back(input.tensor);
  }
  for (size_t i = 0; i < leaves.tensors.size(); ++i) {
    for (const RecordedInput& input : made->recording->inputs) {
      const bool is_captured =
          std::holds_alternative<UserInput>(input.role) && input.tensor.defined();
      if (is_captured && input.tensor.is_same(*leaves.tensors[i]))
        made->fixed_arguments.emplace_back(i, input.tensor);
    }
  }
  made->guards =
      std::make_unique<Guards>(leaves.tensors, made->lifted, takes_offsets(*made->recording));
  const ViewAndMutationMeta meta = analyze_views_and_mutations(*made->recording);
  refuse_shared_writes(meta, distinct_inputs(leaves.tensors, made->lifted));
  stages.end("analysis");
  build(*made, meta, stages);
  stages.write(made->report);
  made->report.guards = made->guards->to_text();
  for (const ModuleGuard& guard : made->modules) {
    made->report.guards += fmt::format("module `{}` is in {} mode\n", guard.name,
                                       guard.training ? "training" : "evaluation");
  }
  return made;
}

std::shared_ptr<Compilation> refuse_calls_like(const Leaves& leaves, const CompileOptions& options,
                                               std::string reason) {
  auto made = std::make_shared<Compilation>();
  made->modules = guard_modules(options);
  made->plain = leaves.plain;
  made->guards = std::make_unique<Guards>(leaves.tensors, made->lifted, /*offsets_matter=*/false);
  made->refusal = std::move(reason);
  return made;
}

}  // namespace foregrad::detail
