#include "cli/learner.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cli/models.h"

namespace foregrad::cli {
namespace {

LabelledImages some_batch(int64_t size) {
  return {.images = at::randn({size, 1, 28, 28}), .labels = at::randint(10, {size}, at::kLong)};
}

class LearnerTest : public ::testing::Test {
 protected:
  LearnerTest() {
    install_counting_allocator();
    at::manual_seed(1);
  }

  const LearnerOptions options_{.model = "cnn", .seed = 7};
};

TEST_F(LearnerTest, EqualLearnersStayEqualHoweverTheyInterleave) {
  EagerLearner a(options_);
  EagerLearner b(options_);
  const LabelledImages first = some_batch(4);
  const LabelledImages second = some_batch(4);
  const double a1 = a.step(first).loss;
  const double a2 = a.step(second).loss;
  at::rand({100});
  EXPECT_EQ(b.step(first).loss, a1);
  EXPECT_EQ(b.step(second).loss, a2);
  EXPECT_NE(a1, a2);
  EXPECT_EQ(max_difference(a.network(), b.network()), 0);
}

TEST_F(LearnerTest, CompiledTakesTheStepsOfEager) {
  EagerLearner eager(options_);
  CompiledLearner compiled(options_);
  for (int i = 0; i < 5; ++i) {
    const LabelledImages batch = some_batch(i == 3 ? 5 : 4);
    EXPECT_EQ(compiled.step(batch).loss, eager.step(batch).loss) << i;
  }
  EXPECT_EQ(max_difference(eager.network(), compiled.network()), 0);
  EXPECT_EQ(compiled.report().eager_calls, 0u);
  EXPECT_FALSE(compiled.report().specialisations.empty());
}

TEST_F(LearnerTest, LossFalls) {
  EagerLearner learner({.model = "mlp", .seed = 1});
  const LabelledImages batch = some_batch(8);
  const double before = learner.step(batch).loss;
  for (int i = 0; i < 20; ++i) learner.step(batch);
  EXPECT_LT(learner.step(batch).loss, before / 2);
}

TEST_F(LearnerTest, LearningRateOfZeroLearnsNothing) {
  EagerLearner learner({.model = "mlp", .seed = 1, .learning_rate = 0.5, .momentum = 0});
  learner.scale_learning_rate(0);
  learner.step(some_batch(8));
  EXPECT_EQ(max_difference(learner.network(), *make_classifier("mlp", 1)), 0);
}

TEST_F(LearnerTest, AccuracyCountsRightGuessesAndGoesOnTraining) {
  EagerLearner learner(options_);
  LabelledImages data = some_batch(1500);
  {
    const at::NoGradGuard no_grad;
    learner.network().eval();
    data.labels = learner.network().forward(data.images).argmax(1);
    learner.network().train();
  }
  EXPECT_EQ(learner.accuracy(data), 1);
  data.labels.slice(0, 0, 750).add_(1).remainder_(10);
  EXPECT_EQ(learner.accuracy(data), 0.5);
  EXPECT_TRUE(learner.network().is_training());
}

TEST_F(LearnerTest, CountsItsOwnMemory) {
  EagerLearner learner({.model = "mlp", .seed = 1});
  const int64_t parameter_bytes = 4 * (784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(learner.memory().live_bytes(), parameter_bytes);
  const LabelledImages batch = some_batch(8);
  EXPECT_EQ(learner.memory().live_bytes(), parameter_bytes);
  learner.step(batch);
  EXPECT_GE(learner.memory().live_bytes(), 3 * parameter_bytes);  // gradients and momentum
  EXPECT_GT(learner.memory().peak_bytes(), learner.memory().live_bytes());
  learner.reset_peak();
  EXPECT_EQ(learner.memory().peak_bytes(), learner.memory().live_bytes());
}

TEST_F(LearnerTest, DifferencesSeeWhatIsNotANumber) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(difference(1, 1), 0);
  EXPECT_EQ(difference(1, 1.5), 0.5);
  EXPECT_EQ(difference(NAN, NAN), 0);
  EXPECT_EQ(difference(NAN, 1), kInf);
  EXPECT_EQ(difference(kInf, kInf), 0);
  EXPECT_EQ(difference(kInf, -kInf), kInf);
}

TEST_F(LearnerTest, NetworkDifferencesCoverParametersAndBuffers) {
  auto a = make_classifier("cnn", 1);
  auto b = make_classifier("cnn", 1);
  const at::NoGradGuard no_grad;
  b->named_buffers()["norm2.running_var"][3] += 0.25;
  EXPECT_EQ(max_difference(*a, *b), 0.25);
  b->named_parameters()["last.bias"][0] += 2;
  EXPECT_NEAR(max_difference(*a, *b), 2, 1e-6);
  b->named_parameters()["last.bias"][1] = NAN;
  EXPECT_EQ(max_difference(*a, *b), std::numeric_limits<double>::infinity());
  a->named_parameters()["last.bias"][1] = NAN;
  EXPECT_NEAR(max_difference(*a, *b), 2, 1e-6);
  EXPECT_THROW(max_difference(*a, *make_classifier("mlp", 1)), c10::Error);
}

}  // namespace
}  // namespace foregrad::cli
