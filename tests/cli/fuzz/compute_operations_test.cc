#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "row_check.h"

namespace foregrad::cli::fuzz {
namespace {

TEST(FuzzComputeOperations, EachRowRuns) { testing::expect_each_row_runs(compute_operations()); }

TEST(FuzzComputeOperations, ComputeWhatTheySay) {
  const at::Tensor x = at::rand({2, 3});
  EXPECT_TRUE(
      at::equal(operation("x[0] * (n[0] / 4.0)").apply({x}, {.numbers = {3}})[0], x * 0.75));
  EXPECT_TRUE(at::equal(operation("x[0] + x[1]").apply({x, x}, {})[0], x + x));
}

}  // namespace
}  // namespace foregrad::cli::fuzz
