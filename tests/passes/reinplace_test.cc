#include "passes/reinplace.h"

#include <gtest/gtest.h>

#include "passes/graph_check.h"
#include "passes/in_place_interpreter.h"
#include "passes/random_graph.h"

namespace foregrad {
namespace {

using testing::inputs_of;
using testing::interpret_in_place;
using testing::RandomGraph;
using testing::reseed;
using testing::same_bits;
using testing::sharing_text;

// Expects that executing in place gives what the plain interpreter gives, and leaves inputs alone.
void expect_runs_in_place(const Graph& plain, const Graph& marked, uint64_t seed) {
  const auto inputs = inputs_of(plain, seed);
  std::vector<at::Tensor> kept;
  for (const at::Tensor& input : inputs) kept.push_back(input.clone());
  reseed(seed);
  std::vector<at::Tensor> expected = interpret(plain, inputs);
  reseed(seed);
  const std::vector<at::Tensor> got = interpret_in_place(marked, inputs);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(same_bits(got[i], expected[i])) << "output " << i << " of " << print_graph(marked);
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_TRUE(inputs[i].equal(kept[i])) << "input " << i << " of " << print_graph(marked);
  EXPECT_EQ(sharing_text(plain, inputs, expected), sharing_text(marked, inputs, got))
      << print_graph(marked);
}

// The text marks what is expected to overwrite.
void expect_marks(std::string_view text) {
  const Graph expected = parse_graph(text);
  Graph plain = expected;
  for (Node& node : plain.nodes) node.overwrites = std::nullopt;
  verify(plain, "before");
  const Graph marked = reinplace(plain);
  verify(marked, "after");
  EXPECT_EQ(print_graph(marked), print_graph(expected));
  EXPECT_EQ(print_graph(reinplace(marked)), print_graph(expected));
  expect_runs_in_place(plain, marked, 1);
}

TEST(Reinplace, OverwritesAChain) {
  expect_marks(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  %2: f32[2]{1} = aten::relu(%1) overwrites 0
  %3: f32[2]{1} = aten::add.Tensor(%2, %0) overwrites 0
  %4: f32[2]{1} = aten::pow.Tensor_Scalar(%3, exponent=2) overwrites 0
  %5: f32[2]{1} = aten::mul.Tensor(%4, wrapped(f64 2.0)) overwrites 0
  output %5 = output(0)
})");
}

TEST(Reinplace, KeepsInputsOutputsAndSavedValues) {
  expect_marks(R"(graph {
  input %0: f32[2]{1} = saved(%7)
  input %1: f32[2]{1} = tangent(output(0))
  %2: f32[2]{1} = aten::neg(%0)
  %3: f32[2]{1} = aten::relu(%2)
  %4: f32[2]{1} = aten::neg(%1)
  %5: f32[2]{1} = aten::relu(%4)
  %6: f32[2]{1} = aten::sigmoid(%5) overwrites 0
  output %2 = output(0)
  output %4 = saved(%4)
  output %3 = grad(0)
  output %6 = grad(1)
})");
}

TEST(Reinplace, KeepsWhatIsReadLater) {
  expect_marks(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  %2: f32[2]{1} = aten::relu(%1)
  %3: f32[2]{1} = aten::mul.Tensor(%1, %2) overwrites 0
  output %3 = output(0)
})");
}

TEST(Reinplace, KeepsWhatAViewReadsLater) {
  expect_marks(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2]{1}+2 = aten::select.int(%1, dim=0, index=1)
  %3: f32[2,2]{2,1} = aten::relu(%1)
  %4: f32[2]{1} = aten::neg(%2)
  %5: f32[2,2]{2,1} = aten::add.Tensor(%3, %4) overwrites 0
  output %5 = output(0)
})");
}

TEST(Reinplace, KeepsWhatAnUndeclaredViewReadsLater) {
  expect_marks(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[4]{1} = aten::_unsafe_view(%1, size=[4])
  %3: f32[2,2]{2,1} = aten::relu(%1)
  %4: f32[4]{1} = aten::sigmoid(%2)
  output %3 = output(0)
  output %4 = output(1)
})");
}

TEST(Reinplace, KeepsWhatAViewThatIsAnOutputShows) {
  expect_marks(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  [%2: f32[1,2]{2,1}, %3: f32[1,2]{2,1}+2] = aten::split.Tensor(%1, split_size=1)
  %4: f32[2,2]{2,1} = aten::relu(%1)
  output %3 = output(0)
  output %4 = output(1)
})");
}

TEST(Reinplace, OverwritesUnderDeadViews) {
  expect_marks(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2]{1}+2 = aten::select.int(%1, dim=0, index=1)
  %3: f32[2]{1} = aten::neg(%2)
  %4: f32[2,2]{2,1} = aten::relu(%1) overwrites 0
  %5: f32[2,2]{2,1} = aten::add.Tensor(%4, %3) overwrites 0
  output %5 = output(0)
})");
}

TEST(Reinplace, NeverOverwritesThroughAView) {
  expect_marks(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2]{1} = aten::select.int(%1, dim=0, index=0)
  %3: f32[2]{1} = aten::relu(%2)
  %4: f32[2,2]{1,2} = aten::t(%0)
  %5: f32[2,2]{1,2} = aten::relu(%4)
  output %3 = output(0)
  output %5 = output(1)
})");
}

TEST(Reinplace, KeepsAnArgumentThatIsReadTwice) {
  expect_marks(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2,2]{2,1} = aten::mul.Tensor(%1, %1)
  %3: f32[2,2]{1,2} = aten::t(%2)
  %4: f32[2,2]{2,1} = aten::mul.Tensor(%2, %3)
  %5: f32[2]{1} = aten::select.int(%4, dim=0, index=0)
  %6: f32[2,2]{2,1} = aten::mul.Tensor(%4, %5)
  output %6 = output(0)
})");
}

TEST(Reinplace, KeepsTypesThatDiffer) {
  // Broadcast, promoted, compared, laid out anew.
  expect_marks(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2]{1} = aten::sum.dim_IntList(%0, dim=[0])
  %3: f32[2,2]{2,1} = aten::add.Tensor(%2, %1)
  %4: bool[2,2]{2,1} = aten::gt.Scalar(%3, other=0)
  %5: f64[2,2]{2,1} = aten::_to_copy(%4, dtype=f64)
  %6: i64[2]{1} = aten::argmax(%0, dim=1)
  %7: f64[2,2]{2,1} = aten::mul.Tensor(%6, %5)
  output %7 = output(0)
})");
}

TEST(Reinplace, KeepsMemoryWithOverlap) {
  expect_marks(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2,2]{0,1} = aten::expand_copy(%0, size=[2, 2])
  %2: f32[2,2]{0,1} = aten::relu(%1)
  output %2 = output(0)
})" + 0);
}

TEST(Reinplace, KeepsWhatIsNotPointwise) {
  expect_marks(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  %2: f32[2,2]{2,1} = aten::cumsum(%1, dim=0)
  %3: f32[2,2]{2,1} = aten::bernoulli.p(%2, p=0.5)
  %4: f32[2,2]{2,1} = aten::mm(%3, %0)
  %5: f32[2,2]{2,1} = aten::atan2(%4, %0) overwrites 0
  output %5 = output(0)
})");
}

TEST(Reinplace, RunsRandomGraphsInPlace) {
  size_t marks = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed).make_forward(16);
    const Graph marked = reinplace(graph);
    verify(marked, "reinplace");
    expect_runs_in_place(graph, marked, seed);
    if (::testing::Test::HasFailure()) return;
    for (const Node& node : marked.nodes) marks += node.overwrites.has_value();
  }
  EXPECT_GT(marks, 200u);
}

}  // namespace
}  // namespace foregrad
