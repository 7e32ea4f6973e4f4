#include "ops/cast_layout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

TEST(CastLayout, AnArgumentOfAnotherDtypeWithGapsMayBeCast) {
  const auto x = at::ones({2, 3});
  const auto whole = at::ones({2, 3}, at::kLong);
  const auto gaps = at::ones({2, 6}, at::kLong).slice(1, 0, 6, 2);
  const auto expanded = at::ones({1, 3}, at::kLong).expand({2, 3});
  EXPECT_FALSE(cast_may_change_layout({x, whole}, {x}));
  EXPECT_TRUE(cast_may_change_layout({x, gaps}, {x}));
  EXPECT_TRUE(cast_may_change_layout({x, expanded}, {x}));
  EXPECT_FALSE(cast_may_change_layout({gaps, gaps}, {whole}));
}

TEST(CastLayout, ComparisonsCastWhatIsMixed) {
  const auto x = at::ones({2, 3});
  const auto gaps = at::ones({2, 6}, at::kLong).slice(1, 0, 6, 2);
  const auto truth = at::ones({2, 3}, at::kBool);
  EXPECT_TRUE(cast_may_change_layout({x, gaps}, {truth}));
  EXPECT_FALSE(cast_may_change_layout({gaps, gaps}, {truth}));
}

}  // namespace
}  // namespace foregrad
