#include "passes/dce.h"

#include <gtest/gtest.h>

#include "graph/parser.h"
#include "passes/graph_check.h"
#include "passes/random_graph.h"

namespace foregrad {
namespace {

using testing::expect_pass;
using testing::expect_same_behaviour;
using testing::RandomGraph;

TEST(Dce, RemovesWhatNothingReads) {
  expect_pass(dce, R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  %2: f32[2]{1} = aten::relu(%1)
  %3: f32[2]{1} = aten::sigmoid(%0)
  output %3 = output(0)
})",
              R"(graph {
  input %0: f32[2]{1} = user(0)
  %3: f32[2]{1} = aten::sigmoid(%0)
  output %3 = output(0)
})");
}

TEST(Dce, KeepsANodeOfWhichOneResultIsRead) {
  constexpr std::string_view graph = R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2]{1}, %2: i64[2]{1} = aten::max.dim(%0, dim=1)
  [%3: f32[1,2]{2,1}, %4: f32[1,2]{2,1}+2] = aten::split.Tensor(%0, split_size=1)
  output %2 = output(0)
  output %4 = output(1)
})";
  expect_pass(dce, graph, graph);
}

TEST(Dce, KeepsRandomNodesAndWhatTheyRead) {
  constexpr std::string_view graph = R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  %2: f32[2]{1} = aten::bernoulli.p(%1, p=0.5)
  %3: f32[2]{1} = aten::rand_like(%0)
  output %3 = output(0)
})";
  expect_pass(dce, graph, graph);
}

TEST(Dce, KeepsChecks) {
  constexpr std::string_view graph = R"(graph {
  input %0: bool[]{} = user(0)
  %1: bool[]{} = aten::logical_not(%0)
  %2: bool[]{} = aten::logical_or(%0, %1)
  () = aten::_assert_async(%2)
  output %0 = output(0)
})";
  expect_pass(dce, graph, graph);
}

TEST(Dce, RemovesADiamond) {
  expect_pass(dce, R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  %2: f32[2]{1} = aten::relu(%1)
  %3: f32[2]{1} = aten::sigmoid(%1)
  backward %4: f32[2]{1} = aten::add.Tensor(%2, %3)
  output undefined = grad(0)
})",
              R"(graph {
  input %0: f32[2]{1} = user(0)
  output undefined = grad(0)
})");
}

TEST(Dce, KeepsBehaviourOfRandomGraphs) {
  size_t removed = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed).make_joint(10);
    const Graph result = dce(graph);
    verify(result, "dce");
    expect_same_behaviour(graph, result, seed);
    EXPECT_EQ(print_graph(dce(result)), print_graph(result));
    removed += graph.nodes.size() - result.nodes.size();
  }
  EXPECT_GT(removed, 100u);
}

TEST(Dce, KeepsForwardNodesThatCheckIndices) {
  constexpr std::string_view graph = R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: i64[2]{1} = user(1)
  %2: f32[2]{1} = aten::gather(%0, dim=0, index=%1)
  output %0 = output(0)
})";
  EXPECT_EQ(dce(parse_graph(graph)).nodes.size(), 1U);
}

TEST(Dce, OfBackwardLeavesForwardNodes) {
  expect_pass(dce_backward, R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = tangent(output(0))
  %2: f32[2]{1} = aten::neg(%0)
  backward %3: f32[2]{1} = aten::sin(%1)
  backward %4: f32[2]{1} = aten::cos(%1)
  output %0 = output(0)
  output %4 = grad(0)
})",
              R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = tangent(output(0))
  %2: f32[2]{1} = aten::neg(%0)
  backward %4: f32[2]{1} = aten::cos(%1)
  output %0 = output(0)
  output %4 = grad(0)
})");
}

TEST(Dce, TellsWhichNodesNothingReads) {
  const Graph graph = parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  %2: f32[2]{1} = aten::sin(%0)
  %3: f32[2]{1} = aten::cos(%1)
  output %2 = output(0)
})");
  EXPECT_EQ(unread_nodes(graph), (std::vector<uint32_t>{0, 2}));
}

}  // namespace
}  // namespace foregrad
