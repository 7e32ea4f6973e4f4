// Which values of a graph are equal because they are computed alike.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace foregrad {

/// Hashes what a node computes: operator and operands. Equal for nodes that `computes_same` calls
/// equal.
size_t hash_of(const Node& node);

/// Whether two nodes call one operator with equal operands.
bool computes_same(const Node& left, const Node& right);

/// Returns for each value (by id) the first one that has equal elements, sizes and strides because
/// a pure operator computes it from equal values; a value that equals no earlier one is its own.
/// Linear in the graph.
std::vector<ValueId> first_equals(const Graph& graph);

}  // namespace foregrad
