// Which tensors of a call share an autograd node.
//
// In eager each tensor that the caller sees has a node of its own, so that hooks, `retain_grad` and
// gradients of one result with respect to another see all that flows through it. A compiled call
// has one node for as many as possible: those of which none leads to another.
#pragma once

#include <vector>

#include "graph/metadata.h"

namespace foregrad {

/// One autograd node of a call.
struct HistoryStage {
  std::vector<Differentiable> tangents;  // in the order in which they get the node
  /// What the caller sees with a history of its own and these lead to: their gradients end there.
  std::vector<Differentiable> cuts;
  bool operator==(const HistoryStage&) const = default;
};

/// `leads_to`: for each of `meta.tangents()` the visible tensors that its history leads to, but for
/// those behind these. Stages come after those that they lead to. Pure.
std::vector<HistoryStage> find_history_stages(
    const ViewAndMutationMeta& meta, const std::vector<std::vector<Differentiable>>& leads_to);

}  // namespace foregrad
