#include "capture/replay.h"

#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include "capture/keys.h"
#include "capture/stand_in.h"
#include "capture/tracer.h"
#include "graph/call.h"
#include "graph/refusal.h"

namespace foregrad {

namespace {

/// Sets the modes that an operator was recorded under; the thread's own come back when it dies.
class ReplayedModes {
 public:
  explicit ReplayedModes(const ModeState& modes) : grad_(modes.grad_mode) {
    at::autocast::set_autocast_enabled(at::kCPU, modes.autocast_enabled);
    at::autocast::set_autocast_dtype(at::kCPU, modes.autocast_dtype);
  }
  ReplayedModes(const ReplayedModes&) = delete;
  ReplayedModes& operator=(const ReplayedModes&) = delete;
  ~ReplayedModes() {
    at::autocast::set_autocast_enabled(at::kCPU, enabled_);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_);
  }

 private:
  bool enabled_ = at::autocast::is_autocast_enabled(at::kCPU);
  at::ScalarType dtype_ = at::autocast::get_autocast_dtype(at::kCPU);
  c10::AutoGradMode grad_;
};

/// A replay may come later than its recording, when the default dtype is another one.
class DefaultDtype {
 public:
  explicit DefaultDtype(at::ScalarType dtype) { set(dtype); }
  DefaultDtype(const DefaultDtype&) = delete;
  DefaultDtype& operator=(const DefaultDtype&) = delete;
  ~DefaultDtype() { set(before_); }

 private:
  static void set(at::ScalarType dtype) {
    if (dtype != c10::get_default_dtype_as_scalartype())
      c10::set_default_dtype(c10::scalarTypeToTypeMeta(dtype));
  }
  at::ScalarType before_ = c10::get_default_dtype_as_scalartype();
};

class JointReplay {
 public:
  JointReplay(const Recording& recording, const ViewAndMutationMeta& meta)
      : recording_(recording), meta_(meta), tracer_(Tracer::Keep::Nodes) {}

  JointTrace run(const std::vector<Differentiable>& tangents) {
    DefaultDtype default_dtype(recording_.default_dtype);
    Tracer::Scope tracing(tracer_);
    TracingScope scope(TracingScope::Level::Replaying);
    make_primals();
    for (const RecordedOp& op : recording_.ops) replay(op);
    for (const OutputRole& role : meta_.forward_outputs()) {
      tracer_.graph().outputs.push_back({traced_value(tensor_of(role)), role});
    }
    check_outputs();
    tracer_.set_phase(Phase::Backward);
    take_gradients(tangents);
    return {.graph = std::move(tracer_.graph()),
            .last_resort_shapes = tracer_.last_resort_shapes()};
  }

 private:
  void make_primals() {
    values_.resize(recording_.value_count);
    for (const RecordedInput& input : recording_.inputs) {
      const auto& seen = input.seen;
      at::Tensor primal =
          make_stand_in(tracer_, seen.before, input.role, seen.requires_grad_before, seen.is_leaf);
      edges_.push_back(seen.requires_grad_before ? torch::autograd::impl::gradient_edge(primal)
                                                 : torch::autograd::Edge());
      values_[input.value.index] = std::move(primal);
    }
  }

  void replay(const RecordedOp& recorded) {
    ReplayedModes modes(recorded.modes);
    torch::jit::Stack stack;
    uint64_t history = 0;
    push_arguments(stack, recorded.op, recorded.args, [&](ValueId id) {
      fold_history(history, values_[id.index]);
      return values_[id.index];
    });
    if (history != recorded.history) refuse_other_history(recorded);
    recorded.op.callBoxed(&stack);
    take_results(stack, recorded.results,
                 [&](ValueId id, at::Tensor&& tensor) { values_[id.index] = std::move(tensor); });
  }

  /// A history that changed without an operator call is not in the recording.
  [[noreturn]] static void refuse_other_history(const RecordedOp& recorded) {
    throw Refusal(
        fmt::format("`{}`: when it ran, autograd knew something else of its arguments than a "
                    "replay of the operators before it tells. "
                    "Expected a function whose effects on autograd are all operator calls; a "
                    "custom `autograd::Function`, or a change of "
                    "`requires_grad` by hand, is not supported yet.",
                    operator_text(recorded.op)));
  }

  at::Tensor tensor_of(const OutputRole& role) const {
    if (const auto* output = std::get_if<UserOutput>(&role)) {
      return values_[recording_.outputs[output->output.index].seen.value->index];
    }
    return values_[recording_.inputs[std::get<MutatedInput>(role).of.index].value.index];
  }

  void check_outputs() const {
    for (size_t i = 0; i < recording_.outputs.size(); ++i) {
      const auto& seen = recording_.outputs[i].seen;
      if (!seen.defined) continue;
      const at::Tensor& replayed = values_[seen.value->index];
      if (replayed.requires_grad() == seen.requires_grad && type_of(replayed) == seen.type)
        continue;
      throw Refusal(fmt::format(
          "output {}: a replay of the recorded operators gives `{}`{}, the function gave `{}`{}. "
          "Expected a function whose "
          "effects on autograd are all operator calls; a custom `autograd::Function` is not "
          "supported yet.",
          i, to_text(type_of(replayed)), replayed.requires_grad() ? " that requires grad" : "",
          to_text(seen.type), seen.requires_grad ? " that requires grad" : ""));
    }
  }

  void take_gradients(const std::vector<Differentiable>& tangents) {
    torch::autograd::edge_list roots;
    torch::autograd::variable_list root_grads;
    for (const Differentiable& of : tangents) {
      const at::Tensor output =
          std::visit([&](const auto& role) { return tensor_of(OutputRole(role)); }, of);
      root_grads.push_back(make_tangent(tracer_, type_of(output), of));
      roots.push_back(torch::autograd::impl::gradient_edge(output));
    }
    torch::autograd::edge_list wanted;
    for (const auto& edge : edges_) {
      if (edge.is_valid()) wanted.push_back(edge);
    }
    torch::autograd::variable_list grads(wanted.size());
    if (!roots.empty() && !wanted.empty()) {
      grads = torch::autograd::Engine::get_default_engine().execute(
          roots, root_grads, /*keep_graph=*/false, /*create_graph=*/false,
          /*accumulate_grad=*/false, wanted);
    }
    size_t next = 0;
    for (uint32_t i = 0; i < edges_.size(); ++i) {
      if (!edges_[i].is_valid()) continue;
      tracer_.graph().outputs.push_back({traced_value(grads[next++]), Grad{InputIndex{i}}});
    }
  }

  const Recording& recording_;
  const ViewAndMutationMeta& meta_;
  Tracer tracer_;
  std::vector<at::Tensor> values_;            // by the recording's values
  std::vector<torch::autograd::Edge> edges_;  // by input: where its history begins
};

}  // namespace

JointTrace trace_joint(const Recording& recording, const ViewAndMutationMeta& meta,
                       const std::vector<Differentiable>& tangents) {
  return JointReplay(recording, meta).run(tangents);
}

}  // namespace foregrad
