// The reference interpreter: the plainest way to run a graph, and the oracle of every pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "graph/graph.h"

namespace foregrad {

/// Runs the graph node by node through ATen, below autograd, keeping every value to the end;
/// `overwrites` is ignored. `inputs` are in the order of `graph.inputs`. Each input and each result
/// must have its declared dtype and sizes, or `c10::Error` says which has not; strides are free.
/// Returns the outputs in the order of `graph.outputs`, undefined where the graph says so. Throws
/// what the operators throw.
std::vector<at::Tensor> interpret(const Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace foregrad
