#include "cli/fuzz/tally_text.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace foregrad::cli::fuzz {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

Tally some() {
  return {.programs = 10,
          .as_eager = 5,
          .refused = 3,
          .differ = 2,
          .eager_threw = 1,
          .seconds = 2,
          .refusals = {{"seldom", {.count = 1, .programs = {4}, .detail = "seldom\nmore"}},
                       {"often", {.count = 2, .programs = {3, 5}, .detail = "often 3"}}},
          .differences = {{"version", {.count = 2, .programs = {7, 8}, .detail = "eager 1"}}}};
}

TEST(FuzzTallyText, EndsWithTheCounts) {
  EXPECT_THAT(to_text(some()), EndsWith("\nprograms 10, as eager 5, refused 3, differ 2\n"));
  EXPECT_THAT(to_text(some()), HasSubstr("5 programs a second; eager itself threw in 1\n"));
}

TEST(FuzzTallyText, ListsTheMostFrequentFirst) {
  const std::string text = to_text(some());
  EXPECT_LT(text.find("often"), text.find("seldom"));
  EXPECT_THAT(text, HasSubstr("program 7, eager 1\n"));
}

TEST(FuzzTallyText, JsonIsReadBack) {
  const auto json = to_json(some(), 9);
  EXPECT_EQ(json["seed"], 9);
  const Tally back = to_tally(json);
  EXPECT_EQ(to_text(back), to_text(some()));
  EXPECT_EQ(to_json(back, 9), json);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
