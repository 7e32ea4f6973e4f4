// Replays a recording into a joint graph of forward and backward.
#pragma once

#include <exception>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "capture/reached_hooks.h"
#include "graph/metadata.h"
#include "graph/recording.h"

namespace foregrad {

/// Gradients taken of one set of tensors.
struct GradientRound {
  /// In the first round outputs of the function. In a later one `UserOutput{i}` is the gradient
  /// with respect to input i of the round before.
  std::vector<Differentiable> of;
  std::vector<c10::DimVector> strides{};  // of the tangents; none: as of what they belong to
  std::vector<bool> requires_grad{};      // whether the tangents do; none: no
  AutocastState autocast{};               // that backward runs under
};

/// Tensors of the call where gradients end, besides the inputs. They are numbered as inputs
/// that follow the recording's, before any tangents.
struct GradientCuts {
  std::vector<Differentiable> always{};
  std::vector<Differentiable> later{};  // after the first round, where it begins at them
  std::set<uint32_t> other_hooks{};     // hooks of the recording that lie behind: they are left out
};

struct JointTrace {
  Graph graph;
  std::map<std::string, uint32_t> last_resort_shapes;  // operator and how often
  /// What autograd threw when it took the gradients, as it does in eager's backward; then they are
  /// all undefined, and only those are there that the history of the tangents leads to.
  std::exception_ptr gradient_error{};
  /// Of one round: inputs and bases that backward reads as they are after the call, though the
  /// graph does not save them themselves: eager's backward throws if they are written before it
  /// runs.
  std::vector<Slot> read_by_backward{};
  /// Of one round without cuts: for each of its tensors the `meta.visible()` ones that its history
  /// leads to, but for those behind these.
  std::vector<std::vector<Differentiable>> leads_to{};
  /// Of one round without cuts.
  std::vector<ReachedHook> reached_hooks{};
  std::set<uint32_t> hooks{};  // of the recording: those in the graph
  /// By how much backward advances the versions of what it writes: for each `LateWrite` and
  /// `TangentWrite`, in the order of the outputs.
  std::vector<uint32_t> late_advances{};
  /// Of several rounds: the inputs whose gradient of the last round but one requires grad.
  std::vector<InputIndex> differentiable{};
};

/// Replays the recording under functionalization and autograd, then takes the gradients of a subset
/// of `meta.tangents()`.
///
/// Inputs: the primals in the order of `recording.inputs`, then one tangent for each of the last
/// round. Outputs: `meta.forward_outputs()`, then `Grad{i}` for each input that requires grad,
/// undefined where autograd leaves it so. The gradient is with respect to the value before the
/// call. Value ids of the forward part do not depend on the rounds, nor those of a round on later
/// ones. Throws `Refusal` if the replay does not do what the recorded run did.
///
/// Of several rounds the last takes gradients of gradients. All but the last are part of the
/// forward phase. Their tangents are inputs that follow the primals: `UserInput{i}`, with i counted
/// on from the recording's inputs, and `Grad{i}` where they require grad. In place of the
/// function's outputs there are the gradients of the last round but one, `UserOutput{i}`, where
/// they are defined. Throws what autograd throws in these rounds.
///
/// `cuts`: where gradients end.
JointTrace trace_rounds(const Recording& recording, const ViewAndMutationMeta& meta,
                        const std::vector<GradientRound>& rounds, const GradientCuts& cuts = {});

/// The same as `trace_rounds` for one round, but for the forward outputs: each updated input, then
/// every defined output of the function, aliases too. Without tangents there are no gradients.
JointTrace trace_all_outputs(const Recording& recording, const ViewAndMutationMeta& meta,
                             const std::vector<Differentiable>& tangents);

/// The same as `trace_rounds` for one round.
JointTrace trace_joint(const Recording& recording, const ViewAndMutationMeta& meta,
                       const std::vector<Differentiable>& tangents,
                       const std::vector<c10::DimVector>& strides = {});

}  // namespace foregrad
