#include "cli/examples.h"

#include <gtest/gtest.h>

#include <set>

#include "expect_failure.h"

namespace foregrad::cli {
namespace {

TEST(ExamplesTest, NamesAreDistinctAndFound) {
  std::set<std::string> names;
  for (const Example& example : examples()) {
    EXPECT_TRUE(names.insert(example.name).second) << example.name;
    EXPECT_FALSE(example.description.empty());
    EXPECT_EQ(&find_example(example.name), &example);
  }
}

TEST(ExamplesTest, UnknownName) {
  testing::expect_failure(
      ExitCode::kUsage, [] { find_example("nope"); }, "`explain`", "pointwise, mlp", "got `nope`");
}

class ExampleTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ExampleTest, CompilesForwardAndBackward) {
  const Report report = find_example(GetParam()).run();
  EXPECT_EQ(report.eager_calls, 0u);
  EXPECT_TRUE(report.fallback_reasons.empty());
  ASSERT_EQ(report.specialisations.size(), 1u);
  const auto& specialisation = report.specialisations[0];
  EXPECT_FALSE(specialisation.signature.empty());
  EXPECT_FALSE(specialisation.forward_graph.empty());
  EXPECT_FALSE(specialisation.backward_graph.empty());
  EXPECT_FALSE(specialisation.joint_graph.empty());
  EXPECT_TRUE(specialisation.forward_dot.starts_with("digraph"));
  EXPECT_TRUE(specialisation.backward_dot.starts_with("digraph"));
}

INSTANTIATE_TEST_SUITE_P(All, ExampleTest,
                         ::testing::Values("pointwise", "mlp", "cnn", "buffer", "view"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace foregrad::cli
