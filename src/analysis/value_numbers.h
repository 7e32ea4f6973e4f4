// Which values of a graph are equal because they are computed alike.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace foregrad {

/// Hashes what a node computes: operator and operands. Equal for nodes that `computes_same` calls
/// equal.
size_t hash_of(const Node& node);

/// The values that a node defines, in order, with gaps where it gives none.
std::vector<std::optional<ValueId>> results_of(const Node& node);

/// Whether two nodes of the graph call one operator with equal operands, for results of equal
/// types.
bool computes_same(const Graph& graph, const Node& left, const Node& right);

/// Says for each value (by id) whether a memory variant reads it: that tells it from an equal one
/// by what lies beside its elements.
std::vector<bool> told_apart_values(const Graph& graph);

/// Returns for each value (by id) the first one that has equal elements, sizes and strides because
/// a pure operator computes it from equal values; a value that equals no earlier one is its own.
/// Linear in the graph.
std::vector<ValueId> first_equals(const Graph& graph);

}  // namespace foregrad
