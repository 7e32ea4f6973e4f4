// The passes, in order. The pipeline is a list; each pass is a function from graph to graph in a
// file of its own.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace foregrad {

struct Pass {
  const char* name;  // file, function, test and `--dump-after=` name
  /// Rewrites the graph; keeps value ids, and the roles of inputs and outputs.
  Graph (*run)(Graph graph);
};

/// How one pass went.
struct PassRecord {
  std::string name;
  double ms = 0;
  size_t nodes_before = 0;
  size_t nodes_after = 0;
};

/// The passes over a joint graph, before it is partitioned. What they do to the forward nodes
/// depends on the forward nodes and the primal outputs alone, but for dead ones: joint graphs of
/// one recording for different tangents keep agreeing on their forward parts.
std::span<const Pass> joint_passes();

/// The passes over a joint graph that is traced for fewer tangents, to be cut at values that were
/// chosen for all of them: as `joint_passes`, but no forward value is dropped for want of a reader.
std::span<const Pass> masked_joint_passes();

/// The passes over a forward or a backward graph, after partitioning.
std::span<const Pass> final_passes();
/// The same but for those that write into memory.
std::span<const Pass> functional_final_passes();

/// The same for a joint graph of several rounds of gradients, before and after it is cut. Forward
/// nodes keep the values that they had.
std::span<const Pass> higher_joint_passes();
std::span<const Pass> higher_final_passes();

/// Runs the passes in order. In checked builds the graph is verified before the first and after
/// each. `dump(name, graph)` is called after each pass that changed the graph, if given. Appends to
/// `records`, the times without verifying and dumping.
Graph run_passes(std::span<const Pass> passes, Graph graph, std::vector<PassRecord>& records,
                 const std::function<void(const char*, const Graph&)>& dump = {});
/// The same where nobody asks how they went.
Graph run_passes(std::span<const Pass> passes, Graph graph);

}  // namespace foregrad
