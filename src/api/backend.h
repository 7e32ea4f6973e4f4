// What a backend replaces of the way from graph to executable.
#pragma once

#include <memory>
#include <span>

#include "graph/backend.h"
#include "passes/pipeline.h"

namespace foregrad::detail {

enum class GraphUse : uint8_t { Forward, Backward, Inference };

/// Returns the backend's compiler for such graphs; empty where Foregrad's own is to be used.
/// `backend` may be null.
const GraphCompiler& compiler_for(GraphUse use, const Backend* backend);

/// The passes over a graph after partitioning, as that compiler takes it: to one of a backend's the
/// graph stays functional.
std::span<const Pass> passes_before(const GraphCompiler& compiler);

/// Compiles the graph. An executable of a backend's compiler is held to the graph at each call:
/// `c10::Error` names what came and what was expected.
Executable compile_graph(const GraphCompiler& compiler, const Graph& graph);

/// Chooses what backward is handed by the backend's partitioner, or by Foregrad's. Ascending.
/// Throws `c10::Error` for what is no value of forward.
std::vector<ValueId> choose_saved(const Graph& joint, const Backend* backend);

/// Has the graph write its inputs itself, where `is_whole(input)` says that all of it is written:
/// `aten::copy_` nodes at the end in place of outputs.
Graph keep_mutations(Graph graph, const std::function<bool(InputIndex)>& is_whole);

}  // namespace foregrad::detail
