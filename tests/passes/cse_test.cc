#include "passes/cse.h"

#include <gtest/gtest.h>

#include "graph/parser.h"
#include "ops/memory_variant.h"
#include "passes/dce.h"
#include "passes/graph_check.h"
#include "passes/random_graph.h"

namespace foregrad {
namespace {

using testing::expect_pass;
using testing::expect_same_behaviour;
using testing::RandomGraph;

void expect_unchanged(std::string_view graph) { expect_pass(cse, graph, graph); }

TEST(Cse, MergesIntoTheFirstTransitively) {
  expect_pass(cse, R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  %2: f32[2]{1} = aten::neg(%0)
  %3: f32[2]{1} = aten::sigmoid(%1)
  %4: f32[2]{1} = aten::sigmoid(%2)
  %5: f32[2]{1} = aten::sub.Tensor(%3, %4)
  output %5 = output(0)
})",
              R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  %3: f32[2]{1} = aten::sigmoid(%1)
  %5: f32[2]{1} = aten::sub.Tensor(%3, %3)
  output %5 = output(0)
})");
}

TEST(Cse, MergesListsSeveralResultsAndFactories) {
  expect_pass(cse, R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  [%1: f32[1,2]{2,1}, %2: f32[1,2]{2,1}+2] = aten::split.Tensor(%0, split_size=1)
  [%3: f32[1,2]{2,1}, %4: f32[1,2]{2,1}+2] = aten::split.Tensor(%0, split_size=1)
  %5: f32[2,2]{2,1} = aten::cat([%1, %2])
  %6: f32[2,2]{2,1} = aten::cat([%3, %4])
  %7: f32[2]{1}, %8: i64[2]{1} = aten::max.dim(%5, dim=1)
  %9: f32[2]{1}, %10: i64[2]{1} = aten::max.dim(%6, dim=1)
  %11: f32[2]{1} = aten::zeros(size=[2])
  %12: f32[2]{1} = aten::zeros(size=[2])
  %13: f32[2]{1} = aten::add.Tensor(%9, %10)
  %14: f32[2]{1} = aten::add.Tensor(%7, %12)
  %15: f32[2]{1} = aten::add.Tensor(%11, %13)
  output %14 = output(0)
  output %15 = output(1)
})",
              R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  [%1: f32[1,2]{2,1}, %2: f32[1,2]{2,1}+2] = aten::split.Tensor(%0, split_size=1)
  %5: f32[2,2]{2,1} = aten::cat([%1, %2])
  %7: f32[2]{1}, %8: i64[2]{1} = aten::max.dim(%5, dim=1)
  %11: f32[2]{1} = aten::zeros(size=[2])
  %13: f32[2]{1} = aten::add.Tensor(%7, %8)
  %14: f32[2]{1} = aten::add.Tensor(%7, %11)
  %15: f32[2]{1} = aten::add.Tensor(%11, %13)
  output %14 = output(0)
  output %15 = output(1)
})");
}

TEST(Cse, TellsLiteralsOperandsAndOperatorsApart) {
  expect_unchanged(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = user(1)
  %2: f32[2]{1} = aten::add.Tensor(%0, %1)
  %3: f32[2]{1} = aten::add.Tensor(%1, %0)
  %4: f32[2]{1} = aten::add.Tensor(%0, %1, alpha=2)
  %5: f32[2]{1} = aten::add.Tensor(%0, wrapped(f64 0.0))
  %6: f32[2]{1} = aten::add.Tensor(%0, wrapped(f64 -0.0))
  %7: f32[2]{1} = aten::sub.Tensor(%0, %1)
  %8: f32[12]{1} = aten::cat([%2, %3, %4, %5, %6, %7])
  output %8 = output(0)
})");
}

TEST(Cse, TellsResultTypesApart) {
  // Whatever made the two layouts differ is not among the operands.
  expect_unchanged(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2,2]{1,2} = aten::neg(%0)
  %3: f32[2,2]{2,1} = aten::mm(%1, %2)
  output %3 = output(0)
})");
}

TEST(Cse, NeverMergesRandomOrUninitialised) {
  // Uninitialised memory is read by nothing whose value shows.
  expect_unchanged(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::rand_like(%0)
  %2: f32[2]{1} = aten::rand_like(%0)
  %3: f32[2]{1} = aten::sub.Tensor(%1, %2)
  %4: f32[2]{1} = aten::empty_like(%0)
  %5: f32[2]{1} = aten::empty_like(%0)
  %6: f32[2]{1} = aten::zeros_like(%4)
  output %3 = output(0)
  output %6 = output(1)
})");
}

TEST(Cse, KeepsOutputsApart) {
  expect_unchanged(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  %2: f32[2]{1} = aten::neg(%0)
  output %1 = output(0)
  output %2 = output(1)
})");
}

TEST(Cse, KeepsOutputsApartThroughViews) {
  expect_unchanged(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2,2]{1,2} = aten::t(%1)
  %3: f32[2,2]{2,1} = aten::neg(%0)
  %4: f32[4]{1} = aten::_unsafe_view(%3, size=[4])
  output %2 = output(0)
  output %4 = output(1)
})");
}

TEST(Cse, KeepsAnOutputApartFromWhatBackwardReads) {
  // The caller may write to the output before backward; eager's other value would not change.
  expect_unchanged(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = tangent(output(1))
  %2: f32[2]{1} = aten::exp(%0)
  %3: f32[2]{1} = aten::exp(%0)
  backward %4: f32[2]{1} = aten::exp(%0)
  backward %5: f32[2]{1} = aten::mul.Tensor(%1, %3)
  backward %6: f32[2]{1} = aten::mul.Tensor(%5, %4)
  output %2 = output(0)
  output %6 = grad(0)
})");
}

TEST(Cse, MergesViewsOfOneBaseUnlessBothAreOutputs) {
  expect_pass(cse, R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{1,2} = aten::t(%0)
  %2: f32[2,2]{1,2} = aten::t(%0)
  %3: f32[2,2]{1,2} = aten::t(%0)
  %4: f32[2,2]{1,2} = aten::neg(%2)
  output %1 = output(0)
  output %3 = output(1)
  output %4 = output(2)
})",
              R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{1,2} = aten::t(%0)
  %3: f32[2,2]{1,2} = aten::t(%0)
  %4: f32[2,2]{1,2} = aten::neg(%1)
  output %1 = output(0)
  output %3 = output(1)
  output %4 = output(2)
})");
}

TEST(Cse, TreatsAViewThatMayCopyAsFresh) {
  // Both reshapes copy. Merged, the second output would be a view of the first.
  expect_unchanged(R"(graph {
  input %0: f32[2,2]{1,2} = user(0)
  %1: f32[4]{1} = aten::reshape(%0, shape=[4])
  %2: f32[4]{1} = aten::reshape(%0, shape=[4])
  %3: f32[2]{1} = aten::slice.Tensor(%2, end=2)
  output %1 = output(0)
  output %3 = output(1)
})");
}

TEST(Cse, BackwardReadsForwardsValue) {
  expect_pass(cse, R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = tangent(output(0))
  %2: f32[2]{1} = aten::exp(%0)
  %3: f32[2]{1} = aten::neg(%2)
  backward %4: f32[2]{1} = aten::exp(%0)
  backward %5: f32[2]{1} = aten::mul.Tensor(%1, %4)
  backward %6: f32[2]{1} = aten::mul.Tensor(%1, %4)
  backward %7: f32[2]{1} = aten::add.Tensor(%5, %6)
  output %3 = output(0)
  output %7 = grad(0)
})",
              R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = tangent(output(0))
  %2: f32[2]{1} = aten::exp(%0)
  %3: f32[2]{1} = aten::neg(%2)
  backward %5: f32[2]{1} = aten::mul.Tensor(%1, %2)
  backward %7: f32[2]{1} = aten::add.Tensor(%5, %5)
  output %3 = output(0)
  output %7 = grad(0)
})");
}

TEST(Cse, ForwardNeverReadsBackward) {
  expect_unchanged(R"(graph {
  input %0: f32[2]{1} = user(0)
  backward %1: f32[2]{1} = aten::exp(%0)
  %2: f32[2]{1} = aten::exp(%0)
  %3: f32[2]{1} = aten::neg(%2)
  backward %4: f32[2]{1} = aten::neg(%1)
  output %3 = output(0)
  output %4 = grad(0)
})");
}

TEST(Cse, KeepsGradientsApart) {
  expect_pass(cse, R"(graph {
  input %0: f32[2]{1} = tangent(output(0))
  backward %1: f32[2]{1} = aten::neg(%0)
  backward %2: f32[2]{1} = aten::neg(%0)
  backward %3: f32[2]{1} = aten::neg(%0)
  backward %4: f32[2]{1} = aten::relu(%3)
  output %1 = grad(0)
  output %2 = grad(1)
  output %4 = grad(2)
})",
              R"(graph {
  input %0: f32[2]{1} = tangent(output(0))
  backward %1: f32[2]{1} = aten::neg(%0)
  backward %2: f32[2]{1} = aten::neg(%0)
  backward %4: f32[2]{1} = aten::relu(%1)
  output %1 = grad(0)
  output %2 = grad(1)
  output %4 = grad(2)
})");
}

TEST(Cse, KeepsGradientsThatAreForwardValuesApart) {
  // As a custom backward makes them that returns what it saved. Gradients 1 and 2 share memory.
  expect_pass(cse, R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2,2]{2,1} = aten::neg(%0)
  %3: f32[2,2]{1,2} = aten::t(%2)
  backward %4: f32[4]{1} = aten::view(%2, size=[4])
  %5: f32[2,2]{1,2} = aten::relu(%3)
  output %5 = output(0)
  output %1 = grad(0)
  output %3 = grad(1)
  output %4 = grad(2)
})",
              R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %3: f32[2,2]{1,2} = aten::t(%1)
  backward %4: f32[4]{1} = aten::view(%1, size=[4])
  %5: f32[2,2]{1,2} = aten::relu(%3)
  backward %6: f32[2,2]{2,1} = aten::neg(%0)
  backward %7: f32[2,2]{1,2} = aten::t(%6)
  backward %8: f32[4]{1} = aten::view(%6, size=[4])
  output %5 = output(0)
  output %1 = grad(0)
  output %7 = grad(1)
  output %8 = grad(2)
})");
}

std::string forward_text(Graph graph) {
  std::erase_if(graph.nodes, [](const Node& node) { return node.phase == Phase::Backward; });
  std::erase_if(graph.outputs,
                [](const auto& output) { return std::holds_alternative<Grad>(output.role); });
  std::erase_if(graph.inputs,
                [](const auto& input) { return std::holds_alternative<Tangent>(input.role); });
  return print_graph(graph);
}

TEST(Cse, ForwardPartDependsOnForwardAlone) {
  size_t merged = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const Graph joint = RandomGraph(seed).make_joint(12);
    Graph alone = joint;
    std::erase_if(alone.nodes, [](const Node& node) { return node.phase == Phase::Backward; });
    std::erase_if(alone.outputs,
                  [](const auto& output) { return std::holds_alternative<Grad>(output.role); });
    EXPECT_EQ(forward_text(cse(joint)), forward_text(cse(alone)));
    merged += alone.nodes.size() - cse(alone).nodes.size();
  }
  EXPECT_GT(merged, 50u);
}

TEST(Cse, KeepsBehaviourOfRandomGraphs) {
  size_t merged = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed).make_joint(12);
    const Graph result = cse(graph);
    verify(result, "cse");
    expect_same_behaviour(graph, result, seed);
    if (::testing::Test::HasFailure()) return;
    merged += dce(graph).nodes.size() - dce(result).nodes.size();
  }
  EXPECT_GT(merged, 100u);
}

TEST(Cse, LeavesEqualViewsThatAMemoryVariantTellsApart) {
  memory_variant(c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""));  // defines it
  const Graph graph = parse_graph(R"(graph {
  input %0: f32[4]{1} = user(0)
  %1: f32[2]{2} = aten::as_strided(%0, size=[2], stride=[2])
  %2: f32[2]{2} = aten::as_strided(%0, size=[2], stride=[2])
  %3: f32[4]{1} = foregrad_memory::copy_(%0, %1, %2)
  output %3 = output(0)
})");
  EXPECT_EQ(cse(graph).nodes.size(), 3U);
}

}  // namespace
}  // namespace foregrad
