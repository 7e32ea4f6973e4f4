#include "cli/fuzz/operation.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace foregrad::cli::fuzz {
namespace {

constexpr Category kCategories[] = {Category::View,   Category::Compute, Category::Factory,
                                    Category::Random, Category::Write,   Category::Metadata};

TEST(FuzzOperation, IsFoundByItsExpression) {
  std::set<std::string> seen;
  for (const Category category : kCategories) {
    ASSERT_FALSE(operations_of(category).empty());
    for (const Operation* row : operations_of(category)) {
      EXPECT_EQ(row->category, category);
      EXPECT_TRUE(seen.insert(row->expression).second) << row->expression;
      EXPECT_EQ(&operation(row->expression), row);
    }
  }
  EXPECT_THROW(operation("x[0].nothing()"), c10::Error);
}

TEST(FuzzOperation, IsDrawnByWeight) {
  Random random(1);
  std::map<const Operation*, int> counts;
  for (int i = 0; i < 20000; ++i) ++counts[&draw_operation(random, Category::Write)];
  int total = 0;
  for (const Operation* row : operations_of(Category::Write)) total += row->weight;
  for (const Operation* row : operations_of(Category::Write)) {
    EXPECT_NEAR(counts[row], 20000.0 * row->weight / total, 200) << row->expression;
  }
}

TEST(FuzzOperation, TellsWhetherItsResultIsAList) {
  EXPECT_TRUE(operation("x[0].split(n[1], n[0])").is_list);
  EXPECT_FALSE(operation("x[0].detach()").is_list);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
