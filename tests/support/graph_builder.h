// Makes graphs for tests in a line an input, node or output.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/literal.h"

namespace foregrad::testing {

/// Returns a contiguous CPU type.
inline TensorType contiguous_type(at::ScalarType dtype, std::initializer_list<int64_t> sizes) {
  TensorType type{
      .dtype = dtype, .sizes = c10::DimVector(sizes), .strides = c10::DimVector(sizes.size(), 1)};
  for (size_t i = type.sizes.size(); i-- > 1;)
    type.strides[i - 1] = type.strides[i] * type.sizes[i];
  return type;
}

/// Returns a CPU type that lies as said.
inline TensorType strided_type(c10::DimVector sizes, c10::DimVector strides, int64_t offset = 0,
                               at::ScalarType dtype = at::kFloat) {
  return {.dtype = dtype,
          .sizes = std::move(sizes),
          .strides = std::move(strides),
          .storage_offset = offset};
}

/// Returns the operator of a full name, for example `aten::add.Tensor`.
inline c10::OperatorHandle find_operator(const std::string& name) {
  const size_t dot = name.find('.');
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      name.substr(0, dot).c_str(), dot == name.npos ? "" : name.substr(dot + 1).c_str());
}

struct GraphBuilder {
  Graph graph;

  ValueId input(TensorType type, InputRole role) { return add_input(graph, std::move(type), role); }

  /// Adds a node; arguments that are not given take their defaults.
  Node& node(const std::string& op_name, std::vector<Operand> args, std::vector<Operand> results) {
    const c10::OperatorHandle op = find_operator(op_name);
    const auto& parameters = op.schema().arguments();
    for (size_t i = args.size(); i < parameters.size(); ++i)
      args.emplace_back(parameters[i].default_value().value());
    return graph.nodes.emplace_back(
        Node{.op = op, .args = std::move(args), .results = std::move(results)});
  }

  /// Adds a node with one tensor result.
  ValueId call(const std::string& op_name, std::vector<Operand> args, TensorType type) {
    const ValueId result = add_value(graph, std::move(type));
    node(op_name, std::move(args), {result});
    return result;
  }

  void output(std::optional<ValueId> value, OutputRole role) {
    graph.outputs.push_back({value, role});
  }
};

/// Says whether two graphs are equal: nodes, ports and the types of all defined values.
inline bool graphs_equal(const Graph& left, const Graph& right) {
  const auto same_node = [&](const Node& a, const Node& b) {
    return a.op == b.op && a.phase == b.phase && a.overwrites == b.overwrites &&
           operands_equal(a.args, b.args) && operands_equal(a.results, b.results);
  };
  bool equal =
      std::equal(left.nodes.begin(), left.nodes.end(), right.nodes.begin(), right.nodes.end(),
                 same_node) &&
      std::equal(
          left.inputs.begin(), left.inputs.end(), right.inputs.begin(), right.inputs.end(),
          [](const auto& a, const auto& b) { return a.value == b.value && a.role == b.role; }) &&
      std::equal(
          left.outputs.begin(), left.outputs.end(), right.outputs.begin(), right.outputs.end(),
          [](const auto& a, const auto& b) { return a.value == b.value && a.role == b.role; });
  if (!equal) return false;
  const auto same_type = [&](ValueId value) {
    equal = equal && left.type(value) == right.type(value);
  };
  for (const GraphInput& input : left.inputs) same_type(input.value);
  for (const Node& node : left.nodes) for_each_definition(node, same_type);
  return equal;
}

}  // namespace foregrad::testing
