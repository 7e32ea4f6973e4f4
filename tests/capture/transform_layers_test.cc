#include "capture/transform_layers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "capture/recorder.h"

namespace foregrad {
namespace {

TEST(TransformLayers, AreThereWhileTheyLive) {
  EXPECT_FALSE(is_transforming());
  {
    const GradLayer outer;
    const JvpLayer inner;
    EXPECT_TRUE(is_transforming());
  }
  EXPECT_FALSE(is_transforming());
}

TEST(TransformLayers, ABatchIsNotSeen) {
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  const VmapLayer layer(3, BatchRandomness::Error);
  const at::Tensor row = layer.batch(x, 1);
  EXPECT_EQ(row.sizes(), at::IntArrayRef({2}));
  const auto [doubled, dim] = layer.unbatch(row * 2);
  ASSERT_TRUE(dim);
  EXPECT_TRUE(at::equal(doubled.movedim(*dim, 1), x * 2));
  EXPECT_FALSE(layer.unbatch(x).dim);
}

TEST(TransformLayers, GradientsAreOfTheLevelBelow) {
  const at::Tensor x = at::full({}, 3.0);
  at::Tensor gradient;
  {
    const at::NoGradGuard no_grad;
    const GradLayer layer;
    const at::Tensor wrapped = layer.wrap(x).set_requires_grad(true);
    gradient = layer.unwrap(torch::autograd::grad({wrapped * wrapped}, {wrapped}, {}, {}, true)[0]);
  }
  EXPECT_EQ(gradient.item<float>(), 6);
  EXPECT_FALSE(gradient.requires_grad());
  EXPECT_FALSE(x.requires_grad());
}

TEST(TransformLayers, TangentsGoAlong) {
  const JvpLayer layer;
  const at::Tensor x = layer.pair(at::full({}, 3.0), at::ones({}));
  const auto [primal, tangent] = layer.part(x * x);
  EXPECT_EQ(primal.item<float>(), 9);
  EXPECT_EQ(tangent.item<float>(), 6);
  EXPECT_FALSE(layer.part(at::ones({})).tangent.defined());
}

TEST(TransformLayers, ARecordingSeesTheOperatorsBelow) {
  const auto result = record({.arguments = {at::ones({3, 2})},
                              .run =
                                  [](const std::vector<at::Tensor>& in) {
                                    const VmapLayer layer(3, BatchRandomness::Error);
                                    const auto sum = layer.unbatch(layer.batch(in[0], 0).sum());
                                    return std::vector<at::Tensor>{sum.tensor};
                                  },
                              .on_capture = {}});
  ASSERT_EQ(result.recording.ops.size(), 1U);
  EXPECT_EQ(operator_text(result.recording.ops[0].op), "aten::sum.dim_IntList");
}

}  // namespace
}  // namespace foregrad
