#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include "passes/dce.h"
#include "passes/graph_check.h"
#include "passes/random_graph.h"

namespace foregrad {
namespace {

using testing::expect_same_behaviour;
using testing::RandomGraph;

constexpr std::string_view kGraph = R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  %2: f32[2]{1} = aten::detach(%1)
  %3: f32[2]{1} = aten::neg(%0)
  %4: f32[2]{1} = aten::mul.Tensor(%2, %3)
  %5: f32[2]{1} = aten::relu(%4)
  output %5 = output(0)
})";

Graph same(Graph graph) { return graph; }

Graph breaks_the_order(Graph graph) {
  std::swap(graph.nodes.front(), graph.nodes.back());
  return graph;
}

TEST(Pipeline, RunsJointThenFinalPasses) {
  std::vector<PassRecord> records;
  const Graph joint = run_passes(joint_passes(), parse_graph(kGraph), records);
  const Graph result = run_passes(final_passes(), joint, records);
  EXPECT_EQ(print_graph(result), R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  %4: f32[2]{1} = aten::mul.Tensor(%1, %1)
  %5: f32[2]{1} = aten::relu(%4) overwrites 0
  output %5 = output(0)
}
)");
  std::vector<std::string> names;
  for (const PassRecord& record : records) names.push_back(record.name);
  EXPECT_EQ(names, (std::vector<std::string>{"fold_noop_views", "cse", "dce", "dce", "reinplace"}));
  EXPECT_EQ(records[1].nodes_before, 5u);
  EXPECT_EQ(records[1].nodes_after, 4u);
  EXPECT_EQ(records[2].nodes_after, 3u);
  for (const PassRecord& record : records) EXPECT_GE(record.ms, 0);
}

TEST(Pipeline, DumpsAfterPassesThatChangeTheGraph) {
  const Pass passes[] = {{"same", same}, {"dce", dce}, {"dce", dce}};
  std::vector<PassRecord> records;
  std::vector<std::string> dumped;
  run_passes(passes, parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  output %0 = output(0)
})"),
             records, [&](const char* name, const Graph& graph) {
               dumped.push_back(name);
               EXPECT_EQ(graph.nodes.size(), 0u);
             });
  EXPECT_EQ(dumped, std::vector<std::string>{"dce"});
  EXPECT_EQ(records.size(), 3u);
}

TEST(Pipeline, VerifiesInCheckedBuilds) {
#if FOREGRAD_CHECKED
  const Pass passes[] = {{"breaks_the_order", breaks_the_order}};
  std::vector<PassRecord> records;
  try {
    run_passes(passes, parse_graph(kGraph), records);
    FAIL() << "the graph is wrong";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("breaks_the_order"), std::string::npos);
  }
#else
  (void)breaks_the_order;
  GTEST_SKIP() << "not a checked build";
#endif
}

TEST(Pipeline, KeepsBehaviourAndRepeatsExactly) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const Graph joint = RandomGraph(seed).make_joint(14);
    std::vector<PassRecord> records;
    const Graph result = run_passes(joint_passes(), joint, records);
    verify(result, "joint passes");
    expect_same_behaviour(joint, result, seed);
    EXPECT_EQ(print_graph(run_passes(joint_passes(), joint, records)), print_graph(result));
  }
}

}  // namespace
}  // namespace foregrad
