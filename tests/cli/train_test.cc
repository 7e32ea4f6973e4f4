#include "cli/train.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>

#include "expect_failure.h"
#include "small_training.h"

namespace foregrad::cli {
namespace {

using testing::train_a_little;

class TrainTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TrainTest, CompiledIsAsEager) {
  const TrainResult result = train_a_little(GetParam(), 7, true);
  ASSERT_TRUE(result.eager && result.difference);
  EXPECT_EQ(result.eager->losses.size(), 7u);
  EXPECT_EQ(result.compiled.losses, result.eager->losses);
  EXPECT_EQ(result.difference->max_loss, 0);
  EXPECT_EQ(result.difference->max_parameter, 0);
  EXPECT_EQ(result.eager->accuracy, result.compiled.accuracy);
  EXPECT_TRUE(result.is_as_eager());
  EXPECT_EQ(result.warm_up_steps, 3);
  EXPECT_GT(result.threads, 0);
  EXPECT_GT(result.eager->peak_bytes, 0);
  EXPECT_GT(result.compiled.peak_bytes, 0);
}

TEST_P(TrainTest, SeedsDecideTheLosses) {
  EXPECT_EQ(train_a_little(GetParam(), 4, false).compiled.losses,
            train_a_little(GetParam(), 4, true).eager->losses);
}

INSTANTIATE_TEST_SUITE_P(Models, TrainTest, ::testing::Values("mlp", "cnn"),
                         [](const auto& info) { return info.param; });

TEST(TrainTest, DefaultIsTwoEpochsWithTheirSmallLastBatch) {
  const TrainResult result = train_a_little("mlp", 0, false);
  EXPECT_EQ(result.steps, 6);  // 8, 8 and 4 pictures, twice
  EXPECT_FALSE(result.eager || result.difference);
}

TEST(TrainTest, OneStep) {
  const TrainResult result = train_a_little("mlp", 1, true);
  EXPECT_EQ(result.warm_up_steps, 0);
  EXPECT_GT(result.compiled.peak_bytes, 0);
}

TEST(TrainTest, DifferencesAndFallBacksFail) {
  TrainResult result;
  EXPECT_TRUE(result.is_as_eager());
  result.report.eager_calls = 1;
  EXPECT_FALSE(result.is_as_eager());
  result.report.eager_calls = 0;
  result.difference = {.max_loss = 1e-9, .max_parameter = 0};
  EXPECT_FALSE(result.is_as_eager());
  result.difference = {.max_loss = 0, .max_parameter = 1e-9};
  EXPECT_FALSE(result.is_as_eager());
}

TEST(TrainTest, InterruptStopsBetweenSteps) {
  const testing::TemporaryFolder folder;
  testing::put_data_set(folder.path(), 20, 10);
  const FashionMnist data = load_fashion_mnist(folder.path());
  // A stream that raises the signal as soon as progress is written to it.
  const cookie_io_functions_t functions{.read = nullptr,
                                        .write = [](void*, const char*, size_t bytes) -> ssize_t {
                                          std::raise(SIGINT);
                                          return static_cast<ssize_t>(bytes);
                                        },
                                        .seek = nullptr,
                                        .close = nullptr};
  std::FILE* stream = fopencookie(nullptr, "w", functions);
  TrainOptions options;
  options.steps = 1'000'000;
  options.batch_size = 8;
  testing::expect_failure(
      ExitCode::kInterrupted, [&] { train(data, options, stream); }, "interrupted");
  std::fclose(stream);
}

TEST(TrainTest, BatchLargerThanTheDataSet) {
  const testing::TemporaryFolder folder;
  testing::put_data_set(folder.path(), 20, 10);
  TrainOptions options;
  options.batch_size = 21;
  const FashionMnist data = load_fashion_mnist(folder.path());
  testing::expect_failure(
      ExitCode::kUsage, [&] { train(data, options, stderr); }, "`--batch`", "from 1 to 20",
      "got 21");
}

}  // namespace
}  // namespace foregrad::cli
