#include "passes/dce.h"

#include <utility>
#include <vector>

#include "ops/schema.h"

namespace foregrad {

namespace {

/// Says which nodes stay; forward nodes all do unless `forward_too`.
std::vector<bool> find_read(const Graph& graph, bool forward_too) {
  std::vector<bool> is_read(graph.values.size());
  for (const GraphOutput& output : graph.outputs) {
    if (output.value) is_read[output.value->index] = true;
  }
  std::vector<bool> stays(graph.nodes.size());
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    bool needed = has_effects(node.op) ||
                  (node.phase == Phase::Forward && (!forward_too || checks_values(node.op)));
    for_each_definition(node, [&](ValueId value) { needed = needed || is_read[value.index]; });
    if (!needed) continue;
    stays[i] = true;
    for_each_read(node, [&](ValueId value) { is_read[value.index] = true; });
  }
  return stays;
}

Graph drop(Graph graph, const std::vector<bool>& stays) {
  size_t kept = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!stays[i]) continue;
    if (kept != i) graph.nodes[kept] = std::move(graph.nodes[i]);
    ++kept;
  }
  graph.nodes.erase(graph.nodes.begin() + static_cast<ptrdiff_t>(kept), graph.nodes.end());
  return graph;
}

}  // namespace

std::vector<uint32_t> unread_nodes(const Graph& graph) {
  const std::vector<bool> stays = find_read(graph, true);
  std::vector<uint32_t> unread;
  for (uint32_t i = 0; i < stays.size(); ++i) {
    if (!stays[i]) unread.push_back(i);
  }
  return unread;
}

Graph dce(Graph graph) {
  const std::vector<bool> stays = find_read(graph, true);
  return drop(std::move(graph), stays);
}

Graph dce_backward(Graph graph) {
  const std::vector<bool> stays = find_read(graph, false);
  return drop(std::move(graph), stays);
}

}  // namespace foregrad
