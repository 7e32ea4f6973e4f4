#include "api/backend.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "graph/parser.h"
#include "graph/printer.h"

namespace foregrad::detail {
namespace {

Graph written() {
  return parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::exp(%0)
  output %1 = mutated(0)
  output %1 = output(0)
})");
}

TEST(Backend, WhatIsEmptyIsForegrads) {
  EXPECT_FALSE(compiler_for(GraphUse::Forward, nullptr));
  const Backend backend{
      .inference = [](const Graph&) { return [](std::vector<at::Tensor> in) { return in; }; }};
  EXPECT_FALSE(compiler_for(GraphUse::Forward, &backend));
  EXPECT_FALSE(compiler_for(GraphUse::Backward, &backend));
  EXPECT_TRUE(compiler_for(GraphUse::Inference, &backend));
  EXPECT_EQ(passes_before({}).size(), final_passes().size());
  EXPECT_LT(passes_before(backend.inference).size(), final_passes().size());
}

TEST(Backend, AnExecutableIsHeldToItsGraph) {
  std::vector<at::Tensor> gives;
  const GraphCompiler compiler = [&](const Graph&) {
    return [&](const std::vector<at::Tensor>&) { return gives; };
  };
  const Executable run = compile_graph(compiler, written());
  const at::Tensor right = at::ones({2});
  gives = {right, right};
  EXPECT_EQ(run({right}).size(), 2U);
  const std::vector<std::vector<at::Tensor>> wrong = {{right},
                                                      {right, at::Tensor()},
                                                      {right, at::ones({3})},
                                                      {right, at::ones({2}, at::kDouble)},
                                                      {right, at::ones({4}).slice(0, 0, 4, 2)}};
  for (const auto& given : wrong) {
    gives = given;
    EXPECT_THROW(run({right}), c10::Error);
  }
  EXPECT_THROW(compile_graph([](const Graph&) { return Executable(); }, written()), c10::Error);
}

TEST(Backend, APartitionerSavesValuesOfForward) {
  const Graph joint = parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::exp(%0)
  input %2: f32[2]{1} = tangent(output(0))
  backward %3: f32[2]{1} = aten::mul.Tensor(%2, %1)
  output %1 = output(0)
  output %3 = grad(0)
})");
  const auto saves = [&](std::vector<ValueId> values) {
    const Backend backend{.partitioner = [&](const Graph&) { return values; }};
    return choose_saved(joint, &backend);
  };
  EXPECT_EQ(choose_saved(joint, nullptr), std::vector<ValueId>{{1}});
  EXPECT_EQ(saves({{1}, {0}, {1}}), (std::vector<ValueId>{{0}, {1}}));
  EXPECT_THROW(saves({{2}}), c10::Error);
  EXPECT_THROW(saves({{3}}), c10::Error);
  EXPECT_THROW(saves({{9}}), c10::Error);
}

TEST(Backend, WritesInputsInTheGraph) {
  const Graph kept = keep_mutations(written(), [](InputIndex) { return true; });
  ASSERT_EQ(kept.outputs.size(), 1U);
  ASSERT_EQ(kept.nodes.size(), 2U);
  EXPECT_EQ(operator_text(kept.nodes[1].op), "aten::copy_");
  const at::Tensor x = at::zeros({2});
  const auto results = compile_graph({}, kept)({x});
  EXPECT_TRUE(at::equal(x, at::ones({2})));
  EXPECT_TRUE(at::equal(results[0], at::ones({2})));
  const Graph partly = keep_mutations(written(), [](InputIndex) { return false; });
  EXPECT_EQ(print_graph(partly), print_graph(written()));
}

}  // namespace
}  // namespace foregrad::detail
