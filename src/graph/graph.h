// A small functional IR: nodes are dispatcher operators, in an order in which they can run.
//
// Every value is written once. Values are stored in a table that passes only mark, never renumber,
// so that a value keeps its id from the trace to the runtime: graphs traced from one recording
// agree on the ids of their forward parts, which is what lets one forward serve several backwards.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/dispatch/OperatorEntry.h>

#include <optional>
#include <string>
#include <vector>

#include "graph/ids.h"
#include "graph/operand.h"
#include "graph/signature.h"
#include "graph/tensor_type.h"

namespace foregrad {

/// Says in which half of a joint graph a node was traced.
enum class Phase : uint8_t { Forward, Backward };

struct Node {
  c10::OperatorHandle op;
  std::vector<Operand> args;  // one for each argument of the schema
  /// One for each return of the schema; a literal `None` is an undefined tensor.
  std::vector<Operand> results;
  Phase phase = Phase::Forward;
  /// The argument whose memory the runtime writes the result into, by the operator's in-place
  /// variant; its last use.
  std::optional<uint32_t> overwrites = std::nullopt;
};

struct GraphInput {
  ValueId value;
  InputRole role;
};

struct GraphOutput {
  std::optional<ValueId> value;  // none: an undefined tensor
  OutputRole role;
};

struct Graph {
  std::vector<TensorType> values;  // indexed by ValueId
  std::vector<Node> nodes;         // each after those whose values it reads
  std::vector<GraphInput> inputs;
  std::vector<GraphOutput> outputs;

  const TensorType& type(ValueId id) const { return values.at(id.index); }
  const Node& node(NodeId id) const { return nodes.at(id.index); }
};

/// Adds a value to the table. It belongs to no node yet.
ValueId add_value(Graph& graph, TensorType type);

/// Adds a value to the table and makes it an input.
ValueId add_input(Graph& graph, TensorType type, InputRole role);

/// Calls `visit(ValueId)` for each value that the node reads, in the order of its arguments,
/// repeats included.
template <class AnyNode, class Visitor>
void for_each_read(AnyNode& node, Visitor&& visit) {
  for (auto& arg : node.args) for_each_value(arg, visit);
}

/// Calls `visit(ValueId)` for each value that the node defines, in the order of its results.
template <class AnyNode, class Visitor>
void for_each_definition(AnyNode& node, Visitor&& visit) {
  for (auto& result : node.results) for_each_value(result, visit);
}

/// Returns for each value (by id) the node that defines it; none for inputs and for values no node
/// defines.
std::vector<std::optional<NodeId>> producers(const Graph& graph);

/// Whether the operator takes an absolute offset into the storage (`as_strided`).
bool takes_offset(const c10::OperatorHandle& op);

/// Returns the full name of an operator with its overload, for example `aten::add.Tensor`.
std::string operator_text(const c10::OperatorHandle& op);

}  // namespace foregrad
