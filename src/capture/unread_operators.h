// Operators whose results nothing reads are dropped. In eager they run, and one that is not
// implemented for its arguments' dtypes, say, throws; its Meta kernel need not.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace foregrad {

/// Runs the forward nodes of these places once on zeros, each kind of operator and dtypes once in a
/// thread. Refuses if one throws.
void check_unread_operators(const Graph& graph, const std::vector<uint32_t>& nodes);

}  // namespace foregrad
