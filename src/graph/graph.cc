#include "graph/graph.h"

#include <algorithm>

#include <c10/util/Exception.h>

namespace foregrad {

ValueId add_value(Graph& graph, TensorType type) {
  ValueId id{static_cast<uint32_t>(graph.values.size())};
  graph.values.push_back(std::move(type));
  return id;
}

ValueId add_input(Graph& graph, TensorType type, InputRole role) {
  ValueId id = add_value(graph, std::move(type));
  graph.inputs.push_back({id, role});
  return id;
}

std::vector<std::optional<NodeId>> producers(const Graph& graph) {
  std::vector<std::optional<NodeId>> producer(graph.values.size());
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    for_each_definition(graph.nodes[i], [&](ValueId id) { producer.at(id.index) = NodeId{i}; });
  }
  return producer;
}

bool takes_offset(const c10::OperatorHandle& op) {
  const auto& parameters = op.schema().arguments();
  return std::any_of(parameters.begin(), parameters.end(), [](const c10::Argument& parameter) {
    return parameter.name() == "storage_offset";
  });
}

std::string operator_text(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

}  // namespace foregrad
