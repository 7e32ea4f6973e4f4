#include "graph/overlap.h"

#include <gtest/gtest.h>

#include "support/graph_builder.h"

namespace foregrad {
namespace {

using testing::strided_type;

TEST(Overlap, IsAByteInCommonNotAStorageInCommon) {
  const TensorType left_columns = strided_type({3, 2}, {4, 1}),
                   right_columns = strided_type({3, 2}, {4, 1}, 2);
  EXPECT_FALSE(overlaps(left_columns, right_columns));
  EXPECT_TRUE(overlaps(left_columns, strided_type({3, 2}, {4, 1}, 1)));
  EXPECT_FALSE(overlaps(strided_type({5}, {2}), strided_type({5}, {2}, 1)));
  EXPECT_TRUE(overlaps(strided_type({5}, {2}), strided_type({1}, {1}, 4)));
  EXPECT_FALSE(overlaps(strided_type({2, 2}, {1, 2}), strided_type({4}, {1}, 4)));
  EXPECT_FALSE(overlaps(strided_type({0}, {1}), strided_type({4}, {1})));
  EXPECT_TRUE(overlaps(strided_type({}, {}), strided_type({7}, {0})));
  EXPECT_TRUE(
      overlaps(strided_type({4}, {1}, 1, at::kShort), strided_type({1}, {1}, 2, at::kFloat)));
  EXPECT_FALSE(
      overlaps(strided_type({4}, {1}, 0, at::kShort), strided_type({1}, {1}, 2, at::kFloat)));
}

TEST(Overlap, ATensorOverlapsItselfWhereAStrideIsZero) {
  EXPECT_TRUE(overlaps_itself(strided_type({3}, {0})));
  EXPECT_FALSE(overlaps_itself(strided_type({1}, {0})));
  EXPECT_FALSE(overlaps_itself(strided_type({3, 0}, {0, 1})));
  EXPECT_FALSE(overlaps_itself(strided_type({3}, {1})));
  EXPECT_TRUE(overlaps_itself(strided_type({3, 2}, {2, 2})));
  EXPECT_FALSE(overlaps_itself(strided_type({2, 3}, {3, 2})));  // 0 2 4 and 3 5 7
  EXPECT_TRUE(overlaps_itself(strided_type({3, 4}, {3, 2})));
}

}  // namespace
}  // namespace foregrad
