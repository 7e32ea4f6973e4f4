#include "capture/replay.h"

#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_map>

#include "capture/call_again.h"
#include "capture/keys.h"
#include "capture/stand_in.h"
#include "capture/tracer.h"
#include "graph/refusal.h"

namespace foregrad {

namespace {

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
      tracer_.graph().outputs.push_back({output_value(role), role});
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
    edges_.resize(recording_.inputs.size());
    for (const auto& [view, base] : recording_.view_bases) view_bases_[view.index] = base;
    const auto place_all = [&](auto&& is_due) {
      for (uint32_t i = 0; i < recording_.inputs.size(); ++i) {
        if (is_due(recording_.inputs[i])) place(i);
      }
    };
    place_all([](const RecordedInput& input) { return !input.view_of && !input.memory; });
    place_all([](const RecordedInput& input) { return input.memory.has_value(); });
    place_all([](const RecordedInput& input) { return input.view_of.has_value(); });
  }

  void place(uint32_t i) {
    const RecordedInput& input = recording_.inputs[i];
    const auto& seen = input.seen;
    at::Tensor primal;
    if (input.view_of) {
      const RecordedInput& base = recording_.inputs[input.view_of->index];
      primal = place_as_view(values_[base.value.index], seen.before,
                             offset_between(base.seen.before, seen.before), input.creation_meta);
    } else if (input.memory) {
      primal =
          place_in_memory(values_[recording_.inputs[input.memory->index].value.index], seen.before,
                          seen.traced_offset, seen.requires_grad_before, seen.is_leaf);
    } else {
      primal =
          make_stand_in(tracer_, seen.before, input.role, seen.requires_grad_before, seen.is_leaf);
    }
    if (const auto counter = recording_.counters.find(input.value);
        counter != recording_.counters.end() && values_[counter->second.index].defined()) {
      primal.unsafeGetTensorImpl()->set_version_counter(
          values_[counter->second.index].unsafeGetTensorImpl()->version_counter());
    }
    if (!input.view_of && seen.requires_grad_before)
      edges_[i] = torch::autograd::impl::gradient_edge(primal);
    values_[input.value.index] = std::move(primal);
  }

  void replay(const RecordedOp& recorded) {
    if (call_again(recorded, values_) != recorded.history) refuse_other_history(recorded);
    if (view_bases_.empty()) return;
    // The base of a view that an operator made inside.
    for (const Operand& result : recorded.results) {
      for_each_value(result, [&](ValueId view) {
        const auto base = view_bases_.find(view.index);
        if (base == view_bases_.end() || values_[base->second.index].defined()) return;
        if (values_[view.index].is_view())
          values_[base->second.index] = base_of(values_[view.index]);
      });
    }
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

  const at::Tensor& tensor_of(const Differentiable& role) const {
    if (const auto* output = std::get_if<UserOutput>(&role))
      return values_[recording_.outputs[output->output.index].seen.value->index];
    if (const auto* base = std::get_if<IntermediateBase>(&role))
      return values_[meta_.bases[base->base.index].value.index];
    return values_[recording_.inputs[std::get<MutatedInput>(role).of.index].value.index];
  }

  /// Inputs are written back as they lay, and bases given as they were made: the effects change
  /// their sizes afterwards.
  std::optional<ValueId> output_value(const OutputRole& role) const {
    const at::Tensor& tensor = tensor_of(*differentiable_of(role));
    return std::holds_alternative<UserOutput>(role) ? traced_value(tensor) : traced_memory(tensor);
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
      const at::Tensor& output = tensor_of(of);
      root_grads.push_back(make_tangent(tracer_, type_of(output), of));
      roots.push_back(torch::autograd::impl::gradient_edge(output));
    }
    torch::autograd::edge_list wanted;
    for (uint32_t i = 0; i < edges_.size(); ++i) {
      // `requires_grad_` in the function makes it a leaf to the operators that follow.
      const RecordedInput& input = recording_.inputs[i];
      if (!edges_[i].is_valid() && input.seen.requires_grad_after && input.seen.is_leaf_after)
        edges_[i] = torch::autograd::impl::gradient_edge(values_[input.value.index]);
    }
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
  std::vector<at::Tensor> values_;                    // by the recording's values
  std::vector<torch::autograd::Edge> edges_;          // by input: where its history begins
  std::unordered_map<uint32_t, ValueId> view_bases_;  // `Recording::view_bases`
};

}  // namespace

JointTrace trace_joint(const Recording& recording, const ViewAndMutationMeta& meta,
                       const std::vector<Differentiable>& tangents) {
  return JointReplay(recording, meta).run(tangents);
}

}  // namespace foregrad
