// Programs on which compilers of tensor programs have been wrong: operators, dtypes, layouts and
// random numbers. The numbers hold for eager and compiled.
#include <torch/nn/modules/batchnorm.h>

#include "support/as_eager.h"
#include "support/values.h"

namespace foregrad::testing {
namespace {

TEST(PublicFaults, F26_TheImaginaryPartOfALazyConjugate) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {at::imag(in[0]) * 1}; },
                  []() -> Start {
                    return {{at::complex(floats({1, 3}), floats({2, -4})).conj()}};
                  },
                  [](const Called& called) {
                    expect_values(called.results[0], {-2, 4});
                  });
}

TEST(PublicFaults, F28_DropoutDrawsEagersMask) {
  const auto fn = [](const at::Tensor& x) -> at::Tensor { return at::dropout(x, 0.5, true); };
  auto compiled = compile(fn);
  for (int call = 0; call < 3; ++call) {
    torch::manual_seed(3);
    const auto eager = fn(at::ones({8}));
    torch::manual_seed(3);
    EXPECT_TRUE(at::equal(compiled(at::ones({8})), eager));
  }
  EXPECT_EQ(compiled.report().eager_calls, 0u);
}

TEST(PublicFaults, F38_TheIndicesOfTheLargestOfATransposedSum) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors { return {std::get<1>(at::max(in[0].t() + in[1], 1))}; },
      []() -> Start {
        return {{floats({1, 2, 3, 4}).view({2, 2}), floats({0, 1, 1, 0}).view({2, 2})}};
      },
      // The sums are {{1, 4}, {3, 4}}.
      [](const Called& called) {
        expect_values(called.results[0], {1, 1});
      });
}

TEST(PublicFaults, F54_InstanceNormUpdatesItsRunningStatistics) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return {at::instance_norm(in[0], {}, {}, in[1], in[2], /*use_input_stats=*/true, 0.1, 1e-5,
                                  /*cudnn_enabled=*/false)};
      },
      []() -> Start {
        // Means 2 and 4, unbiased variances 2 and 8.
        return {{floats({1, 3, 2, 6}).view({1, 2, 2}), at::zeros({2}), at::ones({2})}};
      },
      [](const Called& called) {
        expect_values(called.arguments[1], {.2, .4}, 1e-6);
        expect_values(called.arguments[2], {1.1, 1.7}, 1e-6);
      });
}

/// Runs two training steps whose batches have the means 2 and 6.
void expect_running_mean_4(torch::nn::BatchNorm1d& norm,
                           const std::function<at::Tensor(const at::Tensor&)>& forward) {
  for (const float mean : {2.0F, 6.0F}) forward(floats({mean - 1, mean + 1}).view({2, 1}));
  expect_values(norm->running_mean, {4});
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 2);
}

TEST(PublicFaults, F55_BatchNormAveragesOverTwoSteps) {
  const auto options = torch::nn::BatchNorm1dOptions(1).momentum(std::nullopt);
  torch::nn::BatchNorm1d eager(options);
  expect_running_mean_4(eager, [&](const at::Tensor& x) { return eager(x); });
  torch::nn::BatchNorm1d norm(options);
  auto compiled = compile(norm);
  expect_running_mean_4(norm, [&](const at::Tensor& x) { return compiled(x); });
}

TEST(PublicFaults, F63_EachOperatorRoundsToHalf) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return {in[0].to(at::kHalf) + at::full({4}, -.5).to(at::kHalf)};
      },
      []() -> Start {
        return {{floats({2049, 0.1F, 1e-4F, 60000})}};
      },
      [](const Called& called) {
        EXPECT_EQ(called.results[0].scalar_type(), at::kHalf);
        // 2049 is no half: it becomes 2048, and 2047.5 becomes 2048 again.
        EXPECT_EQ(called.results[0][0].item<float>(), 2048);
      });
}

TEST(PublicFaults, F67_TheResultHasTheStridesOfATransposedOperand) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {at::copysign(in[0], in[1])}; },
                  []() -> Start {
                    return {{at::rand({6, 5}).mT(), at::randn({5, 6})}};
                  },
                  [](const Called& called) {
                    EXPECT_EQ(called.results[0].strides(), at::IntArrayRef({1, 5}));
                  });
}

}  // namespace
}  // namespace foregrad::testing
