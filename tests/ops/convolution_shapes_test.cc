#include "ops/convolution_shapes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/expect_like.h"

namespace foregrad {
namespace {

using testing::expect_like;

using Ints = std::vector<int64_t>;

TEST(ConvolutionShapes, AgreeWithTheRealKernels) {
  for (int64_t stride : {1, 2, 3}) {
    for (int64_t padding : {0, 1}) {
      for (int64_t groups : {1, 2}) {
        for (int64_t width : {1, 3}) {
          const auto x = at::ones({2, 4, 9, 7});
          const auto w = at::ones({6, 4 / groups, width, 2});
          const std::vector<c10::IValue> args{x.to(at::kMeta),
                                              w.to(at::kMeta),
                                              c10::IValue(),
                                              Ints{stride, 1},
                                              Ints{padding, padding},
                                              Ints{1, 2},
                                              false,
                                              Ints{0, 0},
                                              groups};
          const auto real = at::convolution(x, w, {}, {stride, 1}, {padding, padding}, {1, 2},
                                            false, {0, 0}, groups);
          const auto inferred = convolution_shapes(args);
          ASSERT_TRUE(inferred);
          expect_like((*inferred)[0], real);
          for (const std::array<bool, 3> mask :
               {std::array{true, true, true}, std::array{false, true, true},
                std::array{true, false, false}}) {
            const auto [gx, gw, gb] =
                at::convolution_backward(at::ones_like(real), x, w, Ints{6}, {stride, 1},
                                         {padding, padding}, {1, 2}, false, {0, 0}, groups, mask);
            const std::vector<c10::IValue> backward{at::ones_like(real).to(at::kMeta),
                                                    x.to(at::kMeta),
                                                    w.to(at::kMeta),
                                                    Ints{6},
                                                    Ints{stride, 1},
                                                    Ints{padding, padding},
                                                    Ints{1, 2},
                                                    false,
                                                    Ints{0, 0},
                                                    groups,
                                                    c10::List<bool>({mask[0], mask[1], mask[2]})};
            const auto grads = convolution_backward_shapes(backward);
            ASSERT_TRUE(grads);
            expect_like((*grads)[0], gx);
            expect_like((*grads)[1], gw);
            expect_like((*grads)[2], gb);
          }
        }
      }
    }
  }
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
