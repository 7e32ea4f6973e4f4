// What a compiler backend puts in place of Foregrad's own parts.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace foregrad {

/// A compiled graph. Takes tensors in the order of `Graph::inputs`, typed as these are, and gives
/// those of `Graph::outputs`, typed as these are, undefined where an output has no value. Called
/// below autograd, from several threads at once; must change none of its inputs, unless a node of
/// the graph does.
using Executable = std::function<std::vector<at::Tensor>(std::vector<at::Tensor> inputs)>;

/// Compiles a graph. `graph.type(input.value)` tells dtype, sizes and strides of each input.
using GraphCompiler = std::function<Executable(const Graph& graph)>;

/// Chooses which values forward hands to backward: ids of primals and of results of forward nodes.
/// What else backward reads of forward is computed again from these.
using Partitioner = std::function<std::vector<ValueId>(const Graph& joint)>;

/// Takes an operator apart: gets its arguments, in the order of the schema and with defaults, and
/// returns its results, computed by functional operators.
using Decomposition = std::function<std::vector<c10::IValue>(std::vector<c10::IValue> arguments)>;
/// By the operator's full name, for example `aten::silu` or `aten::add.Tensor`.
using Decompositions = std::map<std::string, Decomposition>;

/// What is empty is Foregrad's own.
struct Backend {
  GraphCompiler forward{};    // of calls that gradients may be taken of
  GraphCompiler backward{};   // and of their gradients
  GraphCompiler inference{};  // of the other calls
  Partitioner partitioner{};
  Decompositions decompositions{};
  /// In the inference graph, inputs are written by `aten::copy_` nodes at its end instead of being
  /// outputs, where they are written as a whole.
  bool keeps_mutations = false;
  /// The backward is compiled when it first runs, not with the forward.
  bool has_lazy_backward = true;
};

}  // namespace foregrad
