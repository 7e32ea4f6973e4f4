#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "row_check.h"

namespace foregrad::cli::fuzz {
namespace {

TEST(FuzzViewOperations, EachRowRuns) { testing::expect_each_row_runs(view_operations()); }

TEST(FuzzViewOperations, ViewsShareMemory) {
  const at::Tensor x = at::rand({2, 4});
  for (const Operation* row : operations_of(Category::View)) {
    for (const at::Tensor& result : testing::run_somehow(*row)) {
      EXPECT_TRUE(result.defined()) << row->expression;
    }
  }
  EXPECT_TRUE(operation("x[0].t()").apply({x}, {})[0].is_alias_of(x));
  EXPECT_EQ(operation("x[0].select(n[0], n[1])").apply({x}, {.numbers = {1, 2}})[0].sizes(),
            at::IntArrayRef({2}));
}

}  // namespace
}  // namespace foregrad::cli::fuzz
