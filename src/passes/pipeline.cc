#include "passes/pipeline.h"

#include <array>
#include <chrono>
#include <utility>

#include "graph/printer.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/fold_noop_views.h"
#include "passes/reinplace.h"

#if FOREGRAD_CHECKED
#include "graph/verifier.h"
#endif

namespace foregrad {
namespace {

constexpr std::array kJointPasses = {
    Pass{"fold_noop_views", fold_noop_views},  // so that CSE sees one name for one value
    Pass{"cse", cse}, Pass{"dce", dce},
    // From here on every node has a reader or an effect: the partition saves nothing in vain.
};

constexpr std::array kMaskedJointPasses = {
    Pass{"fold_noop_views", fold_noop_views}, Pass{"cse", cse},
    Pass{"dce_backward", dce_backward},  // which forward nodes are read, other masks tell
};

// Gradients of gradients save what eager does: a value that is computed anew for backward is not
// merged into one of forward, whose own derivative might need what is not saved.
constexpr std::array kHigherJointPasses = {
    Pass{"fold_noop_views", fold_noop_views},
    Pass{"dce_backward", dce_backward},
};

constexpr std::array kHigherFinalPasses = {
    Pass{"cse", cse},
    Pass{"dce", dce},
    Pass{"reinplace", reinplace},
};

constexpr std::array kFunctionalFinalPasses = {Pass{"dce", dce}};

constexpr std::array kFinalPasses = {
    Pass{"dce", dce}, Pass{"reinplace", reinplace},
    // From here on memory matters: no pass may add a reader to a value or move a node.
};

void check([[maybe_unused]] const Graph& graph, [[maybe_unused]] const char* stage) {
#if FOREGRAD_CHECKED
  verify(graph, stage);
#endif
}

}  // namespace

std::span<const Pass> joint_passes() { return kJointPasses; }
std::span<const Pass> masked_joint_passes() { return kMaskedJointPasses; }

std::span<const Pass> final_passes() { return kFinalPasses; }
std::span<const Pass> functional_final_passes() { return kFunctionalFinalPasses; }
std::span<const Pass> higher_joint_passes() { return kHigherJointPasses; }
std::span<const Pass> higher_final_passes() { return kHigherFinalPasses; }

Graph run_passes(std::span<const Pass> passes, Graph graph, std::vector<PassRecord>& records,
                 const std::function<void(const char*, const Graph&)>& dump) {
  using Clock = std::chrono::steady_clock;
  check(graph, "before the passes");
  std::string text = dump ? print_graph(graph) : "";
  for (const Pass& pass : passes) {
    PassRecord record{.name = pass.name, .nodes_before = graph.nodes.size()};
    const auto start = Clock::now();
    graph = pass.run(std::move(graph));
    record.ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    record.nodes_after = graph.nodes.size();
    records.push_back(std::move(record));
    check(graph, pass.name);
    if (!dump) continue;
    std::string after = print_graph(graph);
    if (after != text) dump(pass.name, graph);
    text = std::move(after);
  }
  return graph;
}

Graph run_passes(std::span<const Pass> passes, Graph graph) {
  std::vector<PassRecord> unused;
  return run_passes(passes, std::move(graph), unused);
}

}  // namespace foregrad
