// Backwards of a compiled function: for any tangents, and of gradients to any order.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "capture/replay.h"
#include "graph/metadata.h"
#include "partition/partition.h"
#include "runtime/backwards.h"

namespace foregrad::detail {

/// What the backwards of one autograd node are compiled from. The node of a call has no earlier
/// rounds; that of its gradients, taken with `create_graph`, has one; and so on.
struct Derivatives {
  std::shared_ptr<const Recording> recording;
  ViewAndMutationMeta meta;
  GradientCuts cuts;
  std::vector<GradientRound> earlier;      // the gradients that the node belongs to
  std::vector<Differentiable> tangents;    // of the node
  std::vector<TensorType> types;           // of these, as they were traced
  SavedValues saved;                       // by the node
  SavedValues recoverable;                 // primals that it does not save, but may still find
  std::vector<Slot> unchanged;             // what the first gradients read as it was after the call
  std::vector<InputIndex> differentiated;  // where the node's edges lead
  std::shared_ptr<const Backend> backend{};  // null: none
  AutocastState autocast{};                  // that the first backward is traced under
};

/// The types of a joint graph's tangents.
std::vector<TensorType> tangent_types(const Graph& joint);

/// The inputs that a gradient may reach. `all`: of those that require grad, where it is not known.
std::vector<InputIndex> differentiated_inputs(const Graph& joint, bool all);

/// What the backwards for single tangents need, where that for all together is eager's error.
SavedValues choose_saved_for_each(const Derivatives& derivatives);

/// Makes a backward of its graph: without the saved values that it doesn't read, and the gradients
/// that nobody gets.
/// `late_advances`: `JointTrace::late_advances`.
Backward make_backward(Graph graph, const std::vector<InputIndex>& differentiated,
                       const GraphCompiler& compiler,
                       const std::vector<uint32_t>& late_advances = {});

/// `traced`: the backward for all tangents as they were traced, if it is there already.
std::shared_ptr<BackwardSource> make_backwards(Derivatives derivatives,
                                               std::optional<Backward> traced);

}  // namespace foregrad::detail
