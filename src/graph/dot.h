// Pictures of graphs.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace foregrad {

/// Writes the graph in Graphviz' language: inputs and outputs by role, nodes by operator with their
/// result types, edges by value, saved values and backward nodes in colours of their own.
std::string to_dot(const Graph& graph, std::string_view title);

}  // namespace foregrad
