#include "graph/interpreter.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "graph/call.h"

namespace foregrad {
namespace {

std::string found_text(const at::Tensor& tensor) {
  return tensor.defined() ? to_text(type_of(tensor)) : "an undefined tensor";
}

bool matches(const at::Tensor& tensor, const TensorType& type) {
  return tensor.defined() && tensor.scalar_type() == type.dtype &&
         tensor.sizes() == at::IntArrayRef(type.sizes);
}

class Interpreter {
 public:
  explicit Interpreter(const Graph& graph) : graph_(graph), tensors_(graph.values.size()) {}

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) {
    bind(inputs);
    {
      at::AutoDispatchBelowADInplaceOrView below_autograd;
      for (const Node& node : graph_.nodes) call(node);
    }
    std::vector<at::Tensor> outputs;
    for (const GraphOutput& output : graph_.outputs) {
      outputs.push_back(output.value ? tensor(*output.value) : at::Tensor());
    }
    return outputs;
  }

 private:
  void bind(const std::vector<at::Tensor>& inputs) {
    TORCH_CHECK(inputs.size() == graph_.inputs.size(), "interpreter: expected ",
                graph_.inputs.size(), " inputs, got ", inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const GraphInput& input = graph_.inputs[i];
      const TensorType& type = graph_.type(input.value);
      TORCH_CHECK(matches(inputs[i], type), "interpreter: input ", i, " (`", to_text(input.role),
                  "`): expected ", to_text(type), ", got ", found_text(inputs[i]));
      tensors_.at(input.value.index) = inputs[i];
    }
  }

  void call(const Node& node) {
    torch::jit::Stack stack;
    push_arguments(stack, node.op, node.args,
                   [this](ValueId id) -> const at::Tensor& { return tensor(id); });
    node.op.callBoxed(stack);
    take_results(stack, node.results, [&](ValueId id, at::Tensor&& result) {
      TORCH_CHECK(matches(result, graph_.type(id)), "interpreter: `", operator_text(node.op),
                  "`, value %", id.index, ": expected ", to_text(graph_.type(id)), ", got ",
                  found_text(result));
      tensors_.at(id.index) = std::move(result);
    });
  }

  const at::Tensor& tensor(ValueId id) const {
    const at::Tensor& tensor = tensors_.at(id.index);
    TORCH_CHECK(tensor.defined(), "interpreter: value %", id.index,
                " is read but nothing has defined it");
    return tensor;
  }

  const Graph& graph_;
  std::vector<at::Tensor> tensors_;  // by ValueId
};

}  // namespace

std::vector<at::Tensor> interpret(const Graph& graph, const std::vector<at::Tensor>& inputs) {
  return Interpreter(graph).run(inputs);
}

}  // namespace foregrad
