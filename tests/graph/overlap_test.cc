#include "graph/overlap.h"

#include <gtest/gtest.h>

namespace foregrad {
namespace {

TensorType strided(c10::DimVector sizes, c10::DimVector strides, int64_t offset = 0,
                   at::ScalarType dtype = at::kFloat) {
  return {.dtype = dtype,
          .sizes = std::move(sizes),
          .strides = std::move(strides),
          .storage_offset = offset};
}

TEST(Overlap, IsAByteInCommonNotAStorageInCommon) {
  const TensorType left_columns = strided({3, 2}, {4, 1}),
                   right_columns = strided({3, 2}, {4, 1}, 2);
  EXPECT_FALSE(overlaps(left_columns, right_columns));
  EXPECT_TRUE(overlaps(left_columns, strided({3, 2}, {4, 1}, 1)));
  EXPECT_FALSE(overlaps(strided({5}, {2}), strided({5}, {2}, 1)));
  EXPECT_TRUE(overlaps(strided({5}, {2}), strided({1}, {1}, 4)));
  EXPECT_FALSE(overlaps(strided({2, 2}, {1, 2}), strided({4}, {1}, 4)));
  EXPECT_FALSE(overlaps(strided({0}, {1}), strided({4}, {1})));
  EXPECT_TRUE(overlaps(strided({}, {}), strided({7}, {0})));
  EXPECT_TRUE(overlaps(strided({4}, {1}, 1, at::kShort), strided({1}, {1}, 2, at::kFloat)));
  EXPECT_FALSE(overlaps(strided({4}, {1}, 0, at::kShort), strided({1}, {1}, 2, at::kFloat)));
}

TEST(Overlap, ATensorOverlapsItselfWhereAStrideIsZero) {
  EXPECT_TRUE(overlaps_itself(strided({3}, {0})));
  EXPECT_FALSE(overlaps_itself(strided({1}, {0})));
  EXPECT_FALSE(overlaps_itself(strided({3, 0}, {0, 1})));
  EXPECT_FALSE(overlaps_itself(strided({3}, {1})));
  EXPECT_TRUE(overlaps_itself(strided({3, 2}, {2, 2})));
  EXPECT_FALSE(overlaps_itself(strided({2, 3}, {3, 2})));  // 0 2 4 and 3 5 7
  EXPECT_TRUE(overlaps_itself(strided({3, 4}, {3, 2})));
}

}  // namespace
}  // namespace foregrad
