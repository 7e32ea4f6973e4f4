// A backward that multiplies the one tangent by the one saved value; both are `f32[2]`.
#pragma once

#include "graph/parser.h"
#include "runtime/backward_node.h"
#include "runtime/plan.h"

namespace foregrad::testing {

inline Backward product_backward() {
  const Graph graph = parse_graph(R"(graph {
  input %0: f32[2]{1} = saved(%0)
  input %1: f32[2]{1} = tangent(output(0))
  %2: f32[2]{1} = aten::mul.Tensor(%1, %0)
  output %2 = grad(0)
})");
  return {.run = through_aten(graph), .saved = {0}, .tangents = {graph.type(ValueId{1})}};
}

}  // namespace foregrad::testing
