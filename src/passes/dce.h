// Dead code elimination.
#pragma once

#include "graph/graph.h"

namespace foregrad {

/// Removes nodes whose results nothing reads. Nodes with effects stay, and what they read: eager
/// draws random numbers and runs checks whether or not anything reads the results.
/// Runs at any time; linear.
Graph dce(Graph graph);

}  // namespace foregrad
