// The compiled form of a graph that runs through ATen.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/backend.h"
#include "graph/graph.h"
#include "graph/tensor_type.h"

namespace foregrad {

/// Runs one graph, any number of times. Keeps nothing of the graph it was made from.
class Plan {
 public:
  /// Compiles a verified graph. Throws `c10::Error` that names the node where an operand is defined
  /// by nothing before it, or where `overwrites` finds no in-place variant of the operator.
  explicit Plan(const Graph& graph);

  /// Runs the nodes in order, below autograd. `inputs` are in the order of `Graph::inputs`; each is
  /// released at its last use if the caller has moved it in, and so is each value made on the way.
  /// Returns the outputs in the order of `Graph::outputs`, undefined where the graph says so.
  /// Inputs must be as declared: only checked builds compare them (dtype and sizes) and each
  /// node's results (strides too). Throws what the operators throw, and then holds nothing. May be
  /// called from several threads at once.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs) const;

 private:
  /// One use of a value.
  struct Read {
    uint32_t slot = 0;
    bool last = false;  // the register gives its tensor away
  };
  struct ReadList {
    std::vector<std::optional<Read>> entries;
    c10::TypePtr optional_element;  // of a `Tensor?[]`; null: a `Tensor[]`
  };
  using Argument = std::variant<Read, ReadList, c10::IValue>;

  /// Where a value goes.
  struct Write {
    ValueId value;
    std::optional<uint32_t> slot;  // none: nothing reads it
  };
  struct WriteList {
    std::vector<std::optional<Write>> entries;
  };
  using Result = std::variant<std::monostate, Write, WriteList>;  // monostate: not a value

  struct Step {
    c10::OperatorHandle op;
    std::vector<Argument> args;
    std::vector<Result> results;
    bool is_functional = false;
  };

  class Compiler;
  class Execution;

  bool begins_elsewhere(const std::vector<at::Tensor>& inputs) const;
  void check_inputs(const std::vector<at::Tensor>& inputs) const;
  void check_result(const Step& step, ValueId value, const at::Tensor& result) const;

  size_t input_count_ = 0;
  size_t slot_count_ = 0;   // at least `input_count_`: input i starts in slot i
  size_t stack_depth_ = 0;  // of the widest call
  // Where a step takes an absolute offset, inputs must begin where they did; else both are empty.
  std::vector<int64_t> input_offsets_;
  std::vector<std::pair<uint32_t, uint32_t>> returned_inputs_;  // output, and the input that it is
  std::vector<uint32_t> unread_inputs_;
  std::vector<Step> steps_;
  std::vector<std::optional<Read>> outputs_;
  // What was declared, for checked builds; else empty.
  std::vector<TensorType> types_;         // by ValueId
  std::vector<GraphInput> input_values_;  // in the order of the inputs
};

/// Compiles a graph to run through ATen operators.
Executable through_aten(const Graph& graph);

}  // namespace foregrad
