// The reference interpreter: the plainest way to run a graph, and the oracle of every pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "graph/graph.h"

namespace foregrad {

/// Runs the graph node by node through ATen, below autograd, keeping every value to the end.
/// `inputs` are in the order of `graph.inputs`, each of its declared dtype and sizes (checked). Returns the outputs in the order of
/// `graph.outputs`. Throws what the operators throw.
std::vector<at::Tensor> interpret(const Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace foregrad
