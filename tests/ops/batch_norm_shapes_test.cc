#include "ops/batch_norm_shapes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/expect_like.h"

namespace foregrad {
namespace {

using testing::expect_like;

at::Tensor to_meta(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.to(at::kMeta) : tensor;
}

TEST(BatchNormShapes, AgreeWithTheRealKernels) {
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    for (const auto& sizes : {std::vector<int64_t>{4, 3}, std::vector<int64_t>{2, 3, 5},
                              std::vector<int64_t>{2, 3, 4, 5}}) {
      for (const bool training : {true, false}) {
        const auto x = at::randn(sizes, dtype);
        const auto w = at::ones({3}, dtype);
        const auto mean = at::zeros({3}, dtype);
        const auto var = at::ones({3}, dtype);
        const std::vector<c10::IValue> args{to_meta(x),   to_meta(w), to_meta(w), to_meta(mean),
                                            to_meta(var), training,   0.1,        1e-5};
        const auto [out, save_mean, save_invstd] =
            at::native_batch_norm(x, w, w, mean, var, training, 0.1, 1e-5);
        const auto inferred = batch_norm_shapes(args);
        ASSERT_TRUE(inferred);
        expect_like((*inferred)[0], out);
        expect_like((*inferred)[1], save_mean);
        expect_like((*inferred)[2], save_invstd);
        EXPECT_EQ(batch_norm_functional_shapes(args).has_value(), training);
        for (const std::array<bool, 3> mask :
             {std::array{true, true, true}, std::array{false, true, false}}) {
          const auto [gx, gw, gb] = at::native_batch_norm_backward(
              at::ones_like(x), x, w, mean, var, save_mean, save_invstd, training, 1e-5, mask);
          const std::vector<c10::IValue> backward{to_meta(x),
                                                  to_meta(x),
                                                  to_meta(w),
                                                  to_meta(mean),
                                                  to_meta(var),
                                                  to_meta(save_mean),
                                                  to_meta(save_invstd),
                                                  training,
                                                  1e-5,
                                                  c10::List<bool>({mask[0], mask[1], mask[2]})};
          const auto grads = batch_norm_backward_shapes(backward);
          ASSERT_TRUE(grads);
          expect_like((*grads)[0], gx);
          expect_like((*grads)[1], gw);
          expect_like((*grads)[2], gb);
        }
      }
    }
  }
}

}  // namespace
}  // namespace foregrad
