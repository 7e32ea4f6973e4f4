// Random graphs that can run: chains and diamonds of pointwise operators, views, operators with
// several results, lists, random numbers and repeated nodes.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/call.h"
#include "graph/graph.h"
#include "support/graph_builder.h"

namespace foregrad::testing {

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {}

  /// A forward graph.
  Graph make_forward(size_t nodes) {
    add_primals();
    for (size_t i = 0; i < nodes; ++i) add_node(Phase::Forward);
    add_primal_outputs();
    return std::move(builder_.graph);
  }

  /// A joint graph: backward nodes read tangents and anything before them.

  Graph make_joint(size_t nodes) {
    add_primals();
    for (size_t i = 0; i < nodes; ++i) add_node(Phase::Forward);
    const std::vector<ValueId> forward = floats_;
    add_primal_outputs();
    for (const GraphOutput& output : std::vector(builder_.graph.outputs)) {
      if (!output.value || builder_.graph.type(*output.value).dtype != at::kFloat) continue;
      const at::Tensor& like = tensors_[output.value->index];
      define_input(like.contiguous().clone(), Tangent{*differentiable_of(output.role)});
    }
    for (size_t i = 0; i < nodes; ++i) add_node(Phase::Backward);
    for (uint32_t i = 0; i < 3; ++i) builder_.output(floats_[pick(floats_.size())], Grad{{i}});
    return std::move(builder_.graph);
  }

 private:
  size_t pick(size_t count) { return random_() % count; }

  void define(ValueId id, at::Tensor tensor) {
    tensors_.resize(builder_.graph.values.size());
    if (tensor.scalar_type() == at::kFloat && tensor.dim() > 0) floats_.push_back(id);
    tensors_[id.index] = std::move(tensor);
  }

  void define_input(const at::Tensor& tensor, InputRole role) {
    define(add_input(builder_.graph, type_of(tensor), role), tensor);
  }

  void add_primals() {
    define_input(at::rand({2, 2}), UserInput{{0}});
    define_input(at::rand({2, 2}).t(), UserInput{{1}});
    define_input(at::rand({3, 4}).slice(0, 1, 3).slice(1, 0, 4, 2), Lifted{{2}});
  }

  void add_primal_outputs() {
    if (pick(2) == 0) {
      for (const ValueId value : floats_) {
        // The new value of input 0: any of its type that is not the input itself.
        if (value.index > 2 && tensors_[value.index].sizes() == at::IntArrayRef({2, 2})) {
          builder_.output(value, MutatedInput{{0}});
          break;
        }
      }
    }
    for (uint32_t i = 0; i < 3; ++i)
      builder_.output(floats_[pick(floats_.size())], UserOutput{{i}});
  }

  ValueId any() {
    // Recent values often, so that chains grow; all of them sometimes.
    const size_t recent = std::min<size_t>(4, floats_.size());
    return pick(3) == 0 ? floats_[pick(floats_.size())]
                        : floats_[floats_.size() - 1 - pick(recent)];
  }

  ValueId like(ValueId value) {
    std::vector<ValueId> same;
    for (const ValueId one : floats_) {
      if (tensors_[one.index].sizes() == tensors_[value.index].sizes()) same.push_back(one);
    }
    return same[pick(same.size())];
  }

  void call(const std::string& op_name, std::vector<Operand> args, Phase phase) {
    Node node = builder_.node(op_name, std::move(args), {});
    builder_.graph.nodes.pop_back();
    torch::jit::Stack stack;
    push_arguments(stack, node.op, node.args,
                   [this](ValueId id) -> const at::Tensor& { return tensors_.at(id.index); });
    {
      at::AutoDispatchBelowADInplaceOrView below_autograd;
      node.op.callBoxed(stack);
    }
    for (c10::IValue& result : stack) {
      if (result.isTensor()) {
        node.results.emplace_back(add(result.toTensor()));
      } else {
        ValueList list;
        for (const at::Tensor& tensor : result.toTensorVector()) list.push_back(add(tensor));
        node.results.emplace_back(std::move(list));
      }
    }
    node.phase = phase;
    builder_.graph.nodes.push_back(std::move(node));
  }

  ValueId add(const at::Tensor& tensor) {
    const ValueId id = add_value(builder_.graph, type_of(tensor));
    define(id, tensor);
    return id;
  }

  // A node like an earlier one, with values of its own.
  void repeat_node(Phase phase) {
    const auto& nodes = builder_.graph.nodes;
    const Node node = nodes[nodes.size() - 1 - pick(std::min<size_t>(nodes.size(), 5))];
    const auto name = node.op.operator_name();
    call(name.name + (name.overload_name.empty() ? "" : "." + name.overload_name), node.args,
         phase);
  }

  void add_node(Phase phase) {
    const auto ints = [](std::initializer_list<int64_t> values) {
      return c10::IValue(c10::List<int64_t>(values));
    };
    const ValueId x = any();
    const at::Tensor& tensor = tensors_.at(x.index);
    static const std::vector<std::string> unary = {"aten::relu", "aten::neg", "aten::sigmoid",
                                                   "aten::tanh", "aten::clone"};
    static const std::vector<std::string> binary = {"aten::add.Tensor", "aten::mul.Tensor",
                                                    "aten::sub.Tensor", "aten::atan2"};
    if (!builder_.graph.nodes.empty() && pick(4) == 0) return repeat_node(phase);
    switch (pick(16)) {
      case 0: return call("aten::detach", {x}, phase);
      case 1: return call("aten::transpose.int", {x, int64_t{0}, int64_t{-1}}, phase);
      case 2: return call("aten::unsqueeze", {x, int64_t{0}}, phase);
      case 3: return call("aten::select.int", {x, int64_t{0}, int64_t{0}}, phase);
      case 4: return call("aten::split.Tensor", {x, int64_t{1}, int64_t{0}}, phase);
      case 5:
        return call(tensor.is_contiguous() ? "aten::_unsafe_view" : "aten::reshape",
                    {x, ints({tensor.numel()})}, phase);
      case 6: return call("aten::max.dim", {x, int64_t{-1}, true}, phase);
      case 7: return call("aten::cat", {ValueList{x, like(x)}, int64_t{0}}, phase);
      case 8:
        if (pick(2) == 0) return call("aten::bernoulli.p", {x, 0.5}, phase);
        return call("aten::zeros_like", {x}, phase);
      case 9:
      case 10:
      case 11: return call(unary[pick(unary.size())], {x}, phase);
      default: return call(binary[pick(binary.size())], {x, like(x)}, phase);
    }
  }

  std::mt19937 random_;
  GraphBuilder builder_;
  std::vector<at::Tensor> tensors_;  // by ValueId
  std::vector<ValueId> floats_;
};

}  // namespace foregrad::testing
