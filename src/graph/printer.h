// Graph text: one line an input, a node or an output. `parse_graph` reads it back.
#pragma once

#include <ATen/core/Generator.h>

#include <string>
#include <vector>

#include "graph/graph.h"

namespace foregrad {

/// Writes the graph as text, byte for byte the same for equal graphs.
///
/// ```
/// graph {
///   input %0: f32[2,3]{3,1} = user(0)
///   input %1: f32[2,3]{3,1} = tangent(output(0))
///   %2: f32[2,3]{3,1} = aten::mul.Tensor(%0, %0)
///   %3: f32[2]{1}, %4: i64[2]{1} = aten::max.dim(%2, dim=1)
///   [%5: f32[1,3]{3,1}, %6: f32[1,3]{3,1}] = aten::split.Tensor(%0, split_size=1)
///   backward %7: f32[2,3]{3,1} = aten::mul.Tensor(%1, %0) overwrites 0
///   output %2 = output(0)
///   output undefined = grad(0)
/// }
/// ```
///
/// Tensors stand in their places, literals behind the argument's name. A literal that equals the
/// schema's default is left out, and what follows one that was left out has its name before it. An
/// absent argument is `none`, a result that is not a value `undefined`, a node without results
/// `()`. Values that nothing defines are not written.
std::string print_graph(const Graph& graph);

/// The same; `generators[k]` is what `generator#k` in the text means. New generators are added.
std::string print_graph(const Graph& graph, std::vector<at::Generator>& generators);

/// Writes one call as in graph text, for example `aten::mul.Tensor(%0, %1)`.
std::string call_to_text(const c10::OperatorHandle& op, const std::vector<Operand>& args,
                         std::vector<at::Generator>& generators);

}  // namespace foregrad
