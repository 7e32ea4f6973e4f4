// The rules of the IR, checked.
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace foregrad {

/// Checks that the graph keeps the IR's rules: every value is defined once and before it is read; operands fit the
/// schema in number and kind; roles do not repeat; no node mutates (no argument that its schema writes), so the graph is
/// functional; a literal tensor is a zero-dimensional CPU constant; `overwrites` names a value that nothing reads later;
/// no forward node reads what a backward node defines.
/// `stage` names the step after which the check runs. Throws `c10::Error` with the stage, the rule, the node and the
/// whole graph.
void verify(const Graph& graph, std::string_view stage);

}  // namespace foregrad
