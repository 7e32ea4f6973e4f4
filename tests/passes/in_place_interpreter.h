// An interpreter that does what the runtime does with `Node::overwrites`: it calls the in-place
// variant on the argument itself.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>

#include <vector>

#include "graph/call.h"
#include "graph/graph.h"
#include "ops/schema.h"

namespace foregrad::testing {

inline std::vector<at::Tensor> interpret_in_place(const Graph& graph,
                                                  const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> tensors(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) tensors.at(graph.inputs[i].value.index) = inputs[i];
  {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    for (const Node& node : graph.nodes) {
      torch::jit::Stack stack;
      const c10::OperatorHandle op = node.overwrites ? in_place_variant(node.op).value() : node.op;
      push_arguments(stack, op, node.args,
                     [&](ValueId id) -> const at::Tensor& { return tensors.at(id.index); });
      op.callBoxed(stack);
      take_results(stack, node.results, [&](ValueId id, at::Tensor&& result) {
        tensors.at(id.index) = std::move(result);
      });
    }
  }
  std::vector<at::Tensor> outputs;
  for (const GraphOutput& output : graph.outputs)
    outputs.push_back(output.value ? tensors.at(output.value->index) : at::Tensor());
  return outputs;
}

}  // namespace foregrad::testing
