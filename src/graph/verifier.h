// The rules of the IR, checked.
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace foregrad {

/// Checks that the graph keeps the IR's rules: every value is in the table, is defined once and
/// before it is read, and has as many strides as sizes; operands fit the schema in number and kind;
/// inputs' roles do not repeat, nor do outputs'; no node mutates (no argument that its schema
/// writes), so the graph is functional; a literal tensor is a zero-dimensional CPU constant;
/// `overwrites` names a value that nothing, outputs included, reads later and that is no primal
/// input (the caller's memory); no forward node reads what a backward node defines. Takes about 30
/// ns a node. `stage` names the step after which the check runs. Throws `c10::Error` with the
/// stage, the rule, the node and the whole graph.
void verify(const Graph& graph, std::string_view stage);

}  // namespace foregrad
