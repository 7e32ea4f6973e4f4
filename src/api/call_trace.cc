#include "api/call_trace.h"

#include <algorithm>

#include "graph/refusal.h"

namespace foregrad::detail {

namespace {

HooksOfNodes find_hooks(const CallTrace& trace, const std::vector<Differentiable>& tangents) {
  HooksOfNodes hooks;
  for (const HistoryStage& stage : trace.stages) {
    auto& own = hooks.by_node.emplace_back();
    for (const auto& [hook, root] : trace.joint.reached_hooks) {
      if (root && std::ranges::find(stage.tangents, tangents[*root]) != stage.tangents.end())
        own.insert(hook);
    }
  }
  return hooks;
}

/// What comes to a hook must come at once.
void check_hooks(const CallTrace& trace) {
  for (const uint32_t hook : trace.joint.hooks) {
    const auto nodes = std::ranges::count_if(trace.hooks.by_node,
                                             [&](const auto& own) { return own.contains(hook); });
    const bool is_seen = std::ranges::any_of(
        trace.joint.reached_hooks,
        [&](const ReachedHook& reached) { return reached.hook == hook && !reached.root; });
    if (nodes == 1 && !is_seen) continue;
    throw Refusal(
        "a hook inside the function is on a tensor that gets another history afterwards, by a "
        "write, and several tensors that the caller sees lead to it. Expected it to be registered "
        "after the write.");
  }
}

}  // namespace

std::set<uint32_t> HooksOfNodes::others(size_t node) const {
  std::set<uint32_t> others;
  for (size_t i = 0; i < by_node.size(); ++i) {
    if (i != node) others.insert(by_node[i].begin(), by_node[i].end());
  }
  return others;
}

CallTrace trace_call(const Recording& recording, const ViewAndMutationMeta& meta,
                     const AutocastState& autocast) {
  const std::vector<Differentiable> tangents = meta.tangents();
  CallTrace trace{.joint = trace_rounds(recording, meta, {{.of = tangents, .autocast = autocast}}),
                  .stages = {},
                  .hooks = {}};
  trace.stages = find_history_stages(meta, trace.joint.leads_to);
  trace.hooks = find_hooks(trace, tangents);
  check_hooks(trace);
  return trace;
}

}  // namespace foregrad::detail
