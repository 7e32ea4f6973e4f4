// The joint graph of a call, and the autograd nodes that the call has.
#pragma once

#include <set>
#include <vector>

#include "analysis/history_stages.h"
#include "capture/replay.h"

namespace foregrad::detail {

/// The hooks in the graph, by the node that calls them.
struct HooksOfNodes {
  std::vector<std::set<uint32_t>> by_node;
  /// Returns those of the other nodes.
  std::set<uint32_t> others(size_t node) const;
};

struct CallTrace {
  JointTrace joint;
  std::vector<HistoryStage> stages;
  HooksOfNodes hooks;
};

/// Traces the joint graph. Throws `Refusal` for a hook in the graph that not one node alone calls.
CallTrace trace_call(const Recording& recording, const ViewAndMutationMeta& meta,
                     const AutocastState& autocast);

}  // namespace foregrad::detail
