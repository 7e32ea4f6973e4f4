#include "passes/fold_noop_views.h"

#include <gtest/gtest.h>

#include "passes/dce.h"
#include "passes/graph_check.h"
#include "passes/random_graph.h"

namespace foregrad {
namespace {

using testing::expect_pass;
using testing::expect_same_behaviour;
using testing::RandomGraph;

TEST(FoldNoopViews, ReadsThroughAChain) {
  expect_pass(fold_noop_views, R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2,2]{2,1} = aten::detach(%1)
  %3: f32[2,2]{2,1} = aten::view(%2, size=[2, 2])
  %4: f32[2,2]{2,1} = aten::slice.Tensor(%3)
  backward %5: f32[2,2]{2,1} = aten::mul.Tensor(%4, %0)
  output %5 = grad(0)
})",
              R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2,2]{2,1} = aten::detach(%1)
  %3: f32[2,2]{2,1} = aten::view(%1, size=[2, 2])
  %4: f32[2,2]{2,1} = aten::slice.Tensor(%1)
  backward %5: f32[2,2]{2,1} = aten::mul.Tensor(%1, %0)
  output %5 = grad(0)
})");
}

TEST(FoldNoopViews, KeepsOutputsTensorsOfTheirOwn) {
  expect_pass(fold_noop_views, R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2,2]{2,1} = aten::alias(%1)
  %3: f32[2,2]{2,1} = aten::relu(%2)
  output %1 = output(0)
  output %2 = output(1)
  output %3 = output(2)
})",
              R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2,2]{2,1} = aten::alias(%1)
  %3: f32[2,2]{2,1} = aten::relu(%1)
  output %1 = output(0)
  output %2 = output(1)
  output %3 = output(2)
})");
}

TEST(FoldNoopViews, KeepsViewsThatChangeTheType) {
  // A transposed square of ones has the same sizes, `reshape` and `to` may copy, and `clone` does.
  constexpr std::string_view graph = R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{1,2} = aten::t(%0)
  %2: f32[2,2]{1,2} = aten::neg(%1)
  %3: f32[1,2]{2,1}+2 = aten::slice.Tensor(%0, start=1)
  %4: f32[1,2]{2,1} = aten::neg(%3)
  %5: f32[2,2]{2,1} = aten::to.dtype(%0, dtype=f32, copy=true)
  %6: f32[2,2]{2,1} = aten::alias(%5)
  %7: f32[2,2]{2,1} = aten::clone(%0)
  %8: f32[4]{1} = aten::view(%7, size=[4])
  output %2 = output(0)
  output %4 = output(1)
  output %6 = output(2)
  output %8 = output(3)
})";
  expect_pass(fold_noop_views, graph, graph);
}

TEST(FoldNoopViews, KeepsBehaviourOfRandomGraphs) {
  size_t removed = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed).make_joint(10);
    const Graph result = fold_noop_views(graph);
    verify(result, "fold_noop_views");
    expect_same_behaviour(graph, result, seed);
    removed += dce(graph).nodes.size() - dce(result).nodes.size();
  }
  EXPECT_GT(removed, 20u);
}

}  // namespace
}  // namespace foregrad
