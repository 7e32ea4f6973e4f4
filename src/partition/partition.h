// Cuts a joint graph into a forward and a backward, and says what passes between them.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace foregrad {

/// The forward graph and one backward graph.
///
/// Forward: inputs are the joint's primals in their order; outputs are the joint's primal outputs
/// in their order (MutatedInput, UserOutput, IntermediateBase), then one `Saved{v}` for each saved
/// value, ids ascending.
/// Backward: inputs are `Saved{v}` in that same order, then the tangents and late inputs in the
/// joint's order; outputs are the gradients, then the late writes and tangent writes.
/// Value ids are those of the joint graph in both, and so are those in the roles. One thing is
/// forward's own: the output `Saved{v}` may be a copy of `v`, a value that forward alone knows,
/// with an id past the joint's. Backward always reads it as `v`.
struct Partition {
  Graph forward;
  Graph backward;
};

/// Which values forward hands to backward, in ascending order of their ids. Primals may be among
/// them.
using SavedValues = std::vector<ValueId>;

/// Saves what backward reads, the simple reference: every forward value that a backward node or a
/// gradient output needs. A view is never saved: its base is, and backward takes the view again, so
/// that a later write to the caller's tensor is noticed by the version check on the base.
SavedValues choose_saved_values(const Graph& joint);

/// Cuts the joint graph at the given saved values, which need not be those of this joint graph:
/// they may have been chosen for other tangents of the same recording. A forward value that
/// backward needs and that isn't saved must be computable from saved ones: its nodes are copied
/// into backward, marked `Phase::Backward`. A saved value in the memory of a primal whose data the
/// call mutates is copied by forward, since the caller's tensor is written before backward runs.
/// Throws `c10::Error` with the path to a primal that isn't saved where that is impossible, or if a
/// node with effects (a random one) would have to run twice; `Refusal` if a copy would not keep the
/// type.
Partition partition(const Graph& joint, const SavedValues& saved);
/// The halves on their own: several backwards, each of a joint graph of its own, share one forward.
Graph cut_forward(const Graph& joint, const SavedValues& saved);
Graph cut_backward(const Graph& joint, const SavedValues& saved);

/// Cuts the gradients of the last round but one out of a joint graph of several rounds
/// (`trace_rounds`). Inputs: `Saved{v}` for each value of `before`, then the primals that
/// `tangents` names. Outputs: the joint's `UserOutput`s in their order, then `Saved{v}` for each
/// value of `after`. All nodes are marked `Phase::Backward`. A value that equals one that is there
/// is not computed again. Throws as `partition`.
Graph cut_gradients(const Graph& joint, const SavedValues& before,
                    const std::vector<InputIndex>& tangents, const SavedValues& after);

/// Cuts the gradients of the last round out of such a graph, as `Partition::backward`, with the
/// same regard for equal values.
Graph cut_last_gradients(const Graph& joint, const SavedValues& saved);

}  // namespace foregrad
