#include <gtest/gtest.h>
#include <torch/torch.h>

#include "ops/shape_rules.h"

namespace foregrad {
namespace {

c10::OperatorHandle convolution() {
  return c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
}

TEST(ShapeRules, ConvolutionAgreesWithTheRealKernel) {
  using Ints = std::vector<int64_t>;
  const ShapeRule rule = find_shape_rule(convolution());
  ASSERT_NE(rule, nullptr);
  for (int64_t stride : {1, 2, 3}) {
    for (int64_t padding : {0, 1}) {
      for (int64_t groups : {1, 2}) {
        const auto x = at::ones({2, 4, 9, 7});
        const auto w = at::ones({6, 4 / groups, 3, 2});
        const auto real = at::convolution(x, w, {}, {stride, 1}, {padding, padding}, {1, 2}, false,
                                          {0, 0}, groups);
        const std::vector<c10::IValue> args{x.to(at::kMeta),
                                            w.to(at::kMeta),
                                            c10::IValue(),
                                            Ints{stride, 1},
                                            Ints{padding, padding},
                                            Ints{1, 2},
                                            false,
                                            Ints{0, 0},
                                            groups};
        const auto inferred = rule(args);
        ASSERT_TRUE(inferred);
        EXPECT_EQ((*inferred)[0].sizes(), real.sizes());
        EXPECT_EQ((*inferred)[0].strides(), real.strides());
      }
    }
  }
}

TEST(ShapeRules, LeavesInvalidArgumentsToTheRealKernel) {
  using Ints = std::vector<int64_t>;
  const std::vector<c10::IValue> args{at::ones({1, 3, 4, 4}, at::kMeta),
                                      at::ones({2, 4, 3, 3}, at::kMeta),
                                      c10::IValue(),
                                      Ints{1, 1},
                                      Ints{0, 0},
                                      Ints{1, 1},
                                      false,
                                      Ints{0, 0},
                                      1};
  EXPECT_FALSE(find_shape_rule(convolution())(args));
}

}  // namespace
}  // namespace foregrad
