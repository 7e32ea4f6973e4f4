// Results that take their argument's memory.
#pragma once

#include "graph/graph.h"

namespace foregrad {

/// Sets `Node::overwrites = 0` on pointwise nodes whose first argument's memory is the graph's own
/// and dies there: the runtime calls the operator's in-place variant and needs no new memory.
/// The last pass: afterwards no pass may add a reader or change the order of nodes. Linear.
Graph reinplace(Graph graph);

}  // namespace foregrad
