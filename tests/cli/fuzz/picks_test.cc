#include "cli/fuzz/picks.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foregrad::cli::fuzz {
namespace {

TEST(FuzzPicks, DrawSmallSizes) {
  Random random(1);
  bool has_zero = false;
  for (int i = 0; i < 1000; ++i) {
    const auto sizes = draw_sizes(random);
    EXPECT_LE(sizes.size(), 3U);
    for (const int64_t size : sizes) {
      EXPECT_LE(size, 4);
      has_zero = has_zero || size == 0;
    }
  }
  EXPECT_TRUE(has_zero);
}

TEST(FuzzPicks, FitTheOperand) {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    const at::Tensor x = at::rand(draw_sizes(random));
    Parameters at, strides, view, order;
    if (pick_dim_and_index(random, x, at)) x.select(at.numbers[0], at.numbers[1]);
    if (pick_strides(random, x, strides)) {
      x.as_strided(strides.shape, strides.steps, strides.numbers[0]).sum();
    }
    if (pick_view(random, x, view)) x.view(view.shape);
    if (pick_permutation(random, x, order)) x.permute(order.shape);
  }
}

TEST(FuzzPicks, RefuseWhatDoesNotFit) {
  Random random(3);
  Parameters parameters;
  const at::Tensor number = at::rand({});
  EXPECT_FALSE(pick_dim(random, number, parameters));
  EXPECT_FALSE(pick_diagonal(random, number, parameters));
  EXPECT_FALSE(pick_complex(random, number, parameters));
  EXPECT_FALSE(pick_strides(random, at::rand({0}), parameters));
}

}  // namespace
}  // namespace foregrad::cli::fuzz
