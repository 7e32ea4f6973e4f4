#include "capture/undeclared_writes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capture/recorder.h"

namespace foregrad {
namespace {

bool writes_statistics(bool training) {
  const auto mean = at::zeros({3});
  const auto var = at::ones({3});
  const auto result =
      record({.arguments = {at::randn({2, 3}), mean, var},
              .run = [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
                return {at::batch_norm(in[0], {}, {}, in[1], in[2], training, 0.1, 1e-5, false)};
              },
              .on_capture = {}});
  EXPECT_TRUE(at::equal(mean, at::zeros({3})));
  const auto& seen = result.recording.inputs[1].seen;
  EXPECT_EQ(seen.version_advance, 0u) << "eager advances no version";
  EXPECT_EQ(seen.data_mutated, result.recording.inputs[2].seen.data_mutated);
  return seen.data_mutated;
}

TEST(UndeclaredWrites, TrainModeBatchNormWritesItsStatistics) {
  EXPECT_TRUE(writes_statistics(true));
  EXPECT_FALSE(writes_statistics(false));
}

}  // namespace
}  // namespace foregrad
