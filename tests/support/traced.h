// Records a function, traces its joint graph and interprets it, beside eager.
#pragma once

#include <functional>
#include <vector>

#include "analysis/views_and_mutations.h"
#include "capture/recorder.h"
#include "capture/replay.h"
#include "graph/interpreter.h"
#include "graph/verifier.h"

namespace foregrad::testing {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

/// What a traced function gave: the computed outputs and the gradients of their sum, by input.
struct Traced {
  Recording recording;
  ViewAndMutationMeta meta;
  JointTrace joint;
  Tensors results;  // in the order of the joint graph's outputs
};

/// Records and traces `fn`, then interprets the joint graph on the same arguments with tangents of
/// ones.
inline Traced trace(const Function& fn, const Tensors& arguments) {
  auto recorded = record({.arguments = arguments, .run = fn, .on_capture = {}});
  Traced traced{.recording = std::move(recorded.recording), .meta = {}, .joint = {}, .results = {}};
  traced.meta = analyze_views_and_mutations(traced.recording);
  traced.joint = trace_joint(traced.recording, traced.meta, traced.meta.tangents());
  verify(traced.joint.graph, "trace");
  Tensors inputs;
  for (const GraphInput& input : traced.joint.graph.inputs) {
    const TensorType& type = traced.joint.graph.type(input.value);
    if (const auto* user = std::get_if<UserInput>(&input.role)) {
      inputs.push_back(arguments[user->input.index].detach());
    } else if (const auto* lifted = std::get_if<Lifted>(&input.role)) {
      inputs.push_back(traced.recording.inputs[lifted->input.index].tensor.detach());
    } else {
      inputs.push_back(at::ones(type.sizes, at::TensorOptions().dtype(type.dtype)));
    }
  }
  traced.results = interpret(traced.joint.graph, inputs);
  return traced;
}

}  // namespace foregrad::testing
