#include "cli/train_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace foregrad::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TrainResult compared() {
  TrainResult result;
  result.options.learner.model = "mlp";
  result.steps = 4;
  result.warm_up_steps = 1;
  result.threads = 2;
  result.compiled = {.losses = {2, 1.5, 1.25, 1},
                     .step_ms = {90, 3, 1, 2},
                     .peak_bytes = 1048576,
                     .accuracy = 0.86};
  result.eager = {.losses = {2, 1.5, 1.25, 1},
                  .step_ms = {50, 4, 6, 8},
                  .peak_bytes = 2097152,
                  .accuracy = 0.87};
  result.report.specialisations.resize(2);
  result.report.specialisations[0].compile_ms = 1.5;
  result.report.specialisations[1].compile_ms = 2.5;
  result.report.eager_calls = 0;
  result.difference.emplace();
  return result;
}

TEST(TrainSummaryTest, Median) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(TrainSummaryTest, JsonHasEveryMember) {
  const nlohmann::ordered_json json = to_json(compared());
  EXPECT_EQ(json["max_loss_diff"], 0);
  EXPECT_EQ(json["max_parameter_diff"], 0);
  EXPECT_EQ(json["same_as_eager"], true);
  EXPECT_EQ(json["eager_ms"], 6);
  EXPECT_EQ(json["compiled_ms"], 2);
  EXPECT_EQ(json["eager_mean_ms"], 6);
  EXPECT_EQ(json["compiled_mean_ms"], 2);
  EXPECT_EQ(json["compile_ms"], 4);
  EXPECT_EQ(json["first_step_ms"], 90);
  EXPECT_EQ(json["peak_bytes_eager"], 2097152);
  EXPECT_EQ(json["peak_bytes_compiled"], 1048576);
  EXPECT_EQ(json["accuracy_eager"], 0.87);
  EXPECT_EQ(json["accuracy_compiled"], 0.86);
  EXPECT_EQ(json["eager_calls"], 0);
  EXPECT_EQ(json["steps"], 4);
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["model"], "mlp");
  EXPECT_EQ(json["specialisations"], 2);
  EXPECT_EQ(json["saved_bytes"].size(), 2u);
  EXPECT_EQ(json["losses_eager"], (std::vector<double>{2, 1.5, 1.25, 1}));
  EXPECT_EQ(json["losses_compiled"], (std::vector<double>{2, 1.5, 1.25, 1}));
}

TEST(TrainSummaryTest, HelpDescribesEveryMember) {
  const nlohmann::ordered_json json = to_json(compared());
  for (const auto& item : json.items()) EXPECT_THAT(kTrainJsonHelp, HasSubstr(item.key()));
}

TEST(TrainSummaryTest, JsonWithoutEagerRunHasNulls) {
  TrainResult result = compared();
  result.eager.reset();
  result.difference.reset();
  const nlohmann::ordered_json json = to_json(result);
  for (const char* member : {"same_as_eager", "max_loss_diff", "max_parameter_diff", "eager_ms",
                             "eager_mean_ms", "peak_bytes_eager", "accuracy_eager", "losses_eager"})
    EXPECT_TRUE(json.at(member).is_null()) << member;
  EXPECT_EQ(json["compiled_ms"], 2);
}

TEST(TrainSummaryTest, JsonHasNullForWhatIsNotANumber) {
  TrainResult result = compared();
  result.compiled.losses[2] = NAN;
  result.difference->max_loss = INFINITY;
  const nlohmann::ordered_json json = to_json(result);
  EXPECT_TRUE(json["losses_compiled"][2].is_null());
  EXPECT_TRUE(json["max_loss_diff"].is_null());
  EXPECT_EQ(json["same_as_eager"], false);
}

TEST(TrainSummaryTest, TextOfSuccess) {
  const std::string text = to_text(compared());
  EXPECT_THAT(text, HasSubstr("mlp on Fashion-MNIST: 4 steps"));
  EXPECT_THAT(text, HasSubstr("Compiled equals eager, bit for bit, at each of 4 steps."));
  EXPECT_THAT(text, HasSubstr("87.00 %       86.00 %"));
  EXPECT_THAT(text, HasSubstr("2.00 MiB      1.00 MiB"));
}

TEST(TrainSummaryTest, TextWithoutEagerRunHasNoVerdict) {
  TrainResult result = compared();
  result.eager.reset();
  result.difference.reset();
  EXPECT_THAT(to_text(result), Not(HasSubstr("equals eager")));
}

TEST(TrainSummaryTest, TextOfDifferencesFallBacksAndDivergence) {
  TrainResult result = compared();
  result.difference->max_loss = 0.25;
  result.report.eager_calls = 3;
  result.report.fallback_reasons = {"`item` needs data"};
  result.compiled.losses[2] = NAN;
  const std::string text = to_text(result);
  EXPECT_THAT(text, HasSubstr("Compiled is NOT the same as eager."));
  EXPECT_THAT(text, HasSubstr("0.25"));
  EXPECT_THAT(text, HasSubstr("`item` needs data"));
  EXPECT_THAT(text, HasSubstr("The loss is not finite from step 3 on: use a smaller `--lr`."));
}

}  // namespace
}  // namespace foregrad::cli
