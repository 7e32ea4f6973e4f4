// Backward formulas detach what they saved, and tracing leaves such a `detach` at every saved
// value. Below autograd it is the same tensor. A view whose dtype, sizes, strides, offset and bits
// are those of its base addresses the same elements, so any reader may read the base.
//
// Only operators with one tensor argument whose single result is declared a view of it count: one
// that may copy (`to`, `contiguous`, `reshape`: composite operators) would lose a copy that an
// output needs for memory of its own.
#include "passes/fold_noop_views.h"

#include <c10/util/Exception.h>

#include <optional>
#include <vector>

#include "ops/memory_variant.h"
#include "ops/schema.h"

namespace foregrad {
namespace {

// Returns what the node's result is another name of.
std::optional<ValueId> noop_view_base(const Graph& graph, const Node& node) {
  const auto& aliases = view_aliases(node.op);
  if (aliases.size() != 1 || node.results.size() != 1 || !is_certain_view(node.op))
    return std::nullopt;
  const auto* base = std::get_if<ValueId>(&node.args[aliases[0].argument]);
  const auto* view = std::get_if<ValueId>(&node.results[0]);
  if (!base || !view || graph.type(*base) != graph.type(*view)) return std::nullopt;
  return *base;
}

}  // namespace

Graph fold_noop_views(Graph graph) {
  std::vector<ValueId> renamed;  // by ValueId
  renamed.reserve(graph.values.size());
  for (uint32_t i = 0; i < graph.values.size(); ++i) renamed.push_back({i});
  for (Node& node : graph.nodes) {
    TORCH_INTERNAL_ASSERT(!node.overwrites, "fold_noop_views runs before reinplace");
    // It tells a tensor from another one over the same elements, as eager's kernels do.
    if (!is_memory_variant(node.op))
      for_each_read(node, [&](ValueId& value) { value = renamed[value.index]; });
    if (const auto base = noop_view_base(graph, node))
      renamed[std::get<ValueId>(node.results[0]).index] = *base;
  }
  return graph;
}

}  // namespace foregrad
