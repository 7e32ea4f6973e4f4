// Dead code elimination.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace foregrad {

/// Removes nodes whose results nothing reads. Nodes with effects stay, and what they read: eager
/// draws random numbers and runs checks whether or not anything reads the results. So do forward
/// nodes that check what their arguments hold.
/// Runs at any time; linear.
Graph dce(Graph graph);

/// The same for backward nodes alone: forward nodes stay, whether they are read or not.
Graph dce_backward(Graph graph);

/// Returns the places of the nodes that `dce` removes, in order.
std::vector<uint32_t> unread_nodes(const Graph& graph);

}  // namespace foregrad
