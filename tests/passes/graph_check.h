// Runs graphs for tests of passes: inputs of the declared types, results compared bit by bit, and
// who shares memory with whom.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "graph/interpreter.h"
#include "graph/parser.h"
#include "graph/printer.h"
#include "graph/verifier.h"

namespace foregrad::testing {

inline void reseed(uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(seed);
}

/// Makes a tensor of the type, offset and strides included, filled with small numbers.
inline at::Tensor tensor_of(const TensorType& type) {
  int64_t span = type.storage_offset + 1;
  for (size_t i = 0; i < type.sizes.size(); ++i) span += (type.sizes[i] - 1) * type.strides[i];
  const at::Tensor memory = at::randint(-4, 5, {std::max<int64_t>(span, 1)}, at::kFloat).div(2);
  return memory.to(type.dtype).as_strided(type.sizes, type.strides, type.storage_offset);
}

inline std::vector<at::Tensor> inputs_of(const Graph& graph, uint64_t seed) {
  reseed(seed);
  std::vector<at::Tensor> inputs;
  for (const GraphInput& input : graph.inputs) inputs.push_back(tensor_of(graph.type(input.value)));
  return inputs;
}

inline bool same_bits(const at::Tensor& left, const at::Tensor& right) {
  if (!left.defined() || !right.defined()) return left.defined() == right.defined();
  return left.scalar_type() == right.scalar_type() && left.sizes() == right.sizes() &&
         left.strides() == right.strides() && left.storage_offset() == right.storage_offset() &&
         (left.equal(right) ||
          (left.is_floating_point() && at::allclose(left, right, 0, 0, /*equal_nan=*/true)));
}

/// Writes who shares memory with whom, and who is the same tensor: a line for each pair, outputs
/// numbered after inputs. A primal output and a gradient never count as the same tensor: backward
/// makes its tensors anew.
inline std::string sharing_text(const Graph& graph, const std::vector<at::Tensor>& inputs,
                                const std::vector<at::Tensor>& outputs) {
  std::vector<at::Tensor> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  std::vector<bool> is_backward;
  for (const GraphInput& input : graph.inputs) is_backward.push_back(!primal_of(input.role));
  for (const GraphOutput& output : graph.outputs)
    is_backward.push_back(std::holds_alternative<Grad>(output.role));
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!all[i].defined() || !all[j].defined()) continue;
      if (all[i].is_same(all[j]) && is_backward[i] == is_backward[j]) {
        text += std::to_string(i) + " is " + std::to_string(j) + "\n";
      } else if (all[i].storage().is_alias_of(all[j].storage())) {
        text += std::to_string(i) + " shares with " + std::to_string(j) + "\n";
      }
    }
  }
  return text;
}

/// Expects equal outputs, and the same sharing among inputs and outputs, of two graphs with the
/// same inputs.
inline void expect_same_behaviour(const Graph& before, const Graph& after, uint64_t seed = 1) {
  const auto inputs = inputs_of(before, seed);
  reseed(seed);
  const auto expected = interpret(before, inputs);
  const double expected_next = at::rand({1}).item<double>();
  reseed(seed);
  const auto got = interpret(after, inputs);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(same_bits(expected[i], got[i])) << "output " << i << "\nbefore:\n"
                                                << print_graph(before) << "after:\n"
                                                << print_graph(after);
  }
  EXPECT_EQ(at::rand({1}).item<double>(), expected_next) << "the random stream differs";
  EXPECT_EQ(sharing_text(before, inputs, expected), sharing_text(after, inputs, got))
      << "before:\n"
      << print_graph(before) << "after:\n"
      << print_graph(after);
}

/// Runs a pass over graph text and expects graph text, valid on both sides, of the same behaviour.
inline void expect_pass(Graph (*pass)(Graph), std::string_view before, std::string_view after) {
  const Graph graph = parse_graph(before);
  verify(graph, "before");
  const Graph result = pass(graph);
  verify(result, "after");
  EXPECT_EQ(print_graph(result), print_graph(parse_graph(after)));
  expect_same_behaviour(graph, result);
}

}  // namespace foregrad::testing
