#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "row_check.h"

namespace foregrad::cli::fuzz {
namespace {

TEST(FuzzWriteOperations, EachRowRuns) { testing::expect_each_row_runs(write_operations()); }

TEST(FuzzWriteOperations, WriteTheirFirstOperand) {
  const at::Tensor x = at::zeros({2});
  EXPECT_TRUE(operation("x[0].fill_(n[0])").apply({x}, {.numbers = {3}})[0].is_same(x));
  EXPECT_EQ(x[0].item<float>(), 3);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
