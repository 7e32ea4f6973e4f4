// Replays a recording into a joint graph of forward and backward.
#pragma once

#include <exception>
#include <map>
#include <string>
#include <vector>

#include "graph/metadata.h"
#include "graph/recording.h"

namespace foregrad {

struct JointTrace {
  Graph graph;
  std::map<std::string, uint32_t> last_resort_shapes;  // operator and how often
  /// What autograd threw when it took the gradients, as it does in eager's backward; then they are
  /// all undefined, and only those are there that the history of `tangents` leads to.
  std::exception_ptr gradient_error{};
  /// Inputs and bases that backward reads as they are after the call, though the graph does not
  /// save them themselves: eager's backward throws if they are written before it runs.
  std::vector<Slot> read_by_backward{};
};

/// Replays the recording under functionalization and autograd, then takes the gradients of
/// `tangents`, a subset of `meta.tangents()`.
///
/// Inputs: the primals in the order of `recording.inputs`, then one tangent for each of `tangents`.
/// Outputs: `meta.forward_outputs()`, then `Grad{i}` for each input that requires grad, undefined
/// where autograd leaves it so. The gradient is with respect to the value before the call. Value
/// ids of the forward part do not depend on `tangents`. Throws `Refusal` if the replay does not do
/// what the recorded run did.
/// `strides`: of the tangents; as of what they belong to if there are none.
JointTrace trace_joint(const Recording& recording, const ViewAndMutationMeta& meta,
                       const std::vector<Differentiable>& tangents,
                       const std::vector<c10::DimVector>& strides = {});

}  // namespace foregrad
