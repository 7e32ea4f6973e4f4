// Common subexpressions.
#pragma once

#include "graph/graph.h"

namespace foregrad {

/// Makes readers of a pure node that repeats an earlier one read the earlier one's values; the
/// first stays, with its ids. Results that reach the caller keep memory and tensor objects of their
/// own, as in eager. A backward node that repeats a forward one reads the forward one's values.
/// Removes the nodes that it merges. Runs on graphs in which nothing overwrites yet; linear. What
/// becomes of the forward nodes depends on forward nodes and primal outputs alone.
Graph cse(Graph graph);

}  // namespace foregrad
