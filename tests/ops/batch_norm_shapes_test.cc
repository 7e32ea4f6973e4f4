#include "ops/batch_norm_shapes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/expect_rules.h"

namespace foregrad {
namespace {

TEST(BatchNormShapes, AgreeWithTheRealKernels) { testing::expect_rules_agree(batch_norm_rules()); }

TEST(BatchNormShapes, CoverChannelsLastAndHalfPrecisionWithFloatWeights) {
  const auto x = at::empty({2, 3, 4, 4}, at::TensorOptions().device(at::kMeta).dtype(at::kBFloat16),
                           at::MemoryFormat::ChannelsLast);
  const auto w = at::empty({3}, at::TensorOptions().device(at::kMeta));
  const auto results = batch_norm_shapes(std::vector<c10::IValue>{x, w, w, w, w, true, 0.1, 1e-5});
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[0].strides(), x.strides());
  EXPECT_EQ((*results)[1].scalar_type(), at::kFloat);
}

}  // namespace
}  // namespace foregrad
