#include "capture/reached_hooks.h"

#include <set>
#include <utility>

#include "capture/history_walk.h"

namespace foregrad {

namespace {

using torch::autograd::Edge;
using EdgeKey = std::pair<const torch::autograd::Node*, uint32_t>;

EdgeKey key_of(const Edge& edge) { return {edge.function.get(), edge.input_nr}; }

}  // namespace

std::vector<ReachedHook> find_reached_hooks(
    const std::multimap<const torch::autograd::Node*, uint32_t>& hooks,
    const torch::autograd::edge_list& roots, const torch::autograd::edge_list& seen) {
  std::vector<ReachedHook> reached;
  std::set<EdgeKey> ends;
  for (const Edge& edge : seen) ends.insert(key_of(edge));
  const auto hooks_on = [&](const Edge& edge, auto&& visit) {
    const auto [begin, end] = hooks.equal_range(edge.function.get());
    for (auto hook = begin; hook != end; ++hook) visit(hook->second);
  };
  const auto walk = [&](const Edge& root, std::optional<size_t> number) {
    std::set<uint32_t> found;
    const auto add = [&](uint32_t hook) { found.insert(hook); };
    hooks_on(root, add);
    walk_history(root, [&](const Edge& edge) {
      if (ends.contains(key_of(edge))) return false;
      hooks_on(edge, add);
      return true;
    });
    for (const uint32_t hook : found) reached.push_back({hook, number});
    hooks_on(root, [&](uint32_t hook) { reached.push_back({hook, std::nullopt}); });
  };
  for (size_t i = 0; i < roots.size(); ++i) walk(roots[i], i);
  std::set<EdgeKey> are_roots;
  for (const Edge& edge : roots) are_roots.insert(key_of(edge));
  ends.insert(are_roots.begin(), are_roots.end());
  for (const Edge& edge : seen) {
    if (!are_roots.contains(key_of(edge))) walk(edge, std::nullopt);
  }
  return reached;
}

}  // namespace foregrad
