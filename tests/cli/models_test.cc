#include "cli/models.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "cli/learner.h"
#include "expect_failure.h"

namespace foregrad::cli {
namespace {

class ModelsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelsTest, MapsPicturesToTenScores) {
  auto network = make_classifier(GetParam(), 1);
  EXPECT_TRUE(network->is_training());
  EXPECT_EQ(network->forward(at::randn({3, 1, 28, 28})).sizes(), (at::IntArrayRef{3, 10}));
}

TEST_P(ModelsTest, SeedDecidesTheParameters) {
  EXPECT_EQ(max_difference(*make_classifier(GetParam(), 1), *make_classifier(GetParam(), 1)), 0);
  EXPECT_GT(max_difference(*make_classifier(GetParam(), 1), *make_classifier(GetParam(), 2)), 0);
}

TEST_P(ModelsTest, EveryParameterGetsAGradient) {
  auto network = make_classifier(GetParam(), 1);
  cross_entropy(network->forward(at::randn({8, 1, 28, 28})), at::randint(10, {8}, at::kLong))
      .backward();
  for (const auto& parameter : network->named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_GT(parameter.value().grad().abs().sum().item<double>(), 0) << parameter.key();
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelsTest, ::testing::ValuesIn(model_names()),
                         [](const auto& info) { return info.param; });

TEST(ModelsTest, CnnDropsOutAndKeepsRunningStatistics) {
  auto network = make_classifier("cnn", 1);
  const at::Tensor x = at::randn({4, 1, 28, 28});
  EXPECT_FALSE(network->forward(x).equal(network->forward(x)));
  EXPECT_GT(network->named_buffers()["norm1.running_mean"].abs().sum().item<double>(), 0);
  network->eval();
  EXPECT_TRUE(network->forward(x).equal(network->forward(x)));
}

TEST(ModelsTest, UnknownName) {
  testing::expect_failure(
      ExitCode::kUsage, [] { make_classifier("gpt", 0); }, "`--model`", "mlp, cnn", "`gpt`");
}

TEST(ModelsTest, CrossEntropyIsTheUsualOne) {
  const at::Tensor scores = at::randn({5, 10});
  const at::Tensor labels = at::randint(10, {5}, at::kLong);
  EXPECT_TRUE(cross_entropy(scores, labels).equal(at::cross_entropy_loss(scores, labels)));
}

}  // namespace
}  // namespace foregrad::cli
