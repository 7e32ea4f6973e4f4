#include "ops/convolution_shapes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/expect_rules.h"

namespace foregrad {
namespace {

using Ints = std::vector<int64_t>;

TEST(ConvolutionShapes, AgreeWithTheRealKernels) {
  testing::expect_rules_agree(convolution_rules());
}

TEST(ConvolutionShapes, LeaveInvalidArgumentsAndOtherLayoutsToTheRealKernel) {
  const auto w = at::ones({2, 4, 3, 3}, at::kMeta);
  const auto infer = [&](const at::Tensor& x) {
    return convolution_shapes(std::vector<c10::IValue>{x, w, c10::IValue(), Ints{1, 1}, Ints{0, 0},
                                                       Ints{1, 1}, false, Ints{0, 0}, 1});
  };
  EXPECT_TRUE(infer(at::ones({1, 4, 4, 4}, at::kMeta)));
  EXPECT_FALSE(infer(at::ones({1, 3, 4, 4}, at::kMeta)));
  EXPECT_FALSE(infer(at::ones({1, 4, 2, 4}, at::kMeta)));
  EXPECT_FALSE(infer(at::ones({1, 4, 4, 4}, at::kMeta).to(at::kDouble)));
  EXPECT_FALSE(infer(at::ones({1, 4, 4, 4}, at::kMeta).contiguous(at::MemoryFormat::ChannelsLast)));
}

}  // namespace
}  // namespace foregrad
