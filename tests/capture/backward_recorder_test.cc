#include "capture/backward_recorder.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "capture/recorder.h"

namespace foregrad {
namespace {

using Tensors = std::vector<at::Tensor>;

/// What a hook does, which is recorded by the recorder of backwards.
std::shared_ptr<const RecordedNode> recorded_hook(
    const std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>& hook) {
  const Recording recording =
      record({.arguments = {at::ones({2}).requires_grad_(), at::ones({2})},
              .run = [&](const Tensors& in) -> Tensors {
                const at::Tensor y = in[0] * 3;
                y.register_hook([hook, x = in[1]](const at::Tensor& g) { return hook(g, x); });
                return {y};
              },
              .on_capture = {}})
          .recording;
  return recording.hooks.at(0).does;
}

TEST(BackwardRecorder, NumbersWhatIsReadThenTheGradientThenWhatIsMade) {
  const auto does =
      recorded_hook([](const at::Tensor& g, const at::Tensor& x) { return g * x + 1; });
  ASSERT_EQ(does->saved.size(), 1U);
  EXPECT_FALSE(does->saved[0].is_checked);
  const RecordedBackward& backward = does->backwards.at(1);
  EXPECT_EQ(backward.value_count, 4U);
  EXPECT_EQ(std::get<ValueId>(backward.ops[0].args[0]), ValueId{1});
  EXPECT_EQ(std::get<ValueId>(backward.ops[0].args[1]), ValueId{0});
  EXPECT_EQ(backward.gradients, (std::vector<std::optional<ValueId>>{ValueId{3}}));
}

TEST(BackwardRecorder, TellsOfWrites) {
  EXPECT_TRUE(recorded_hook([](const at::Tensor& g, const at::Tensor& x) { return x.copy_(g); })
                  ->backwards.at(1)
                  .writes);
  EXPECT_FALSE(recorded_hook([](const at::Tensor& g, const at::Tensor&) { return (g * 2).add_(1); })
                   ->backwards.at(1)
                   .writes);
}

TEST(BackwardRecorder, RecordsWithoutAutocast) {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const auto does = recorded_hook([](const at::Tensor& g, const at::Tensor&) { return g * 2; });
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_FALSE(does->backwards.at(1).ops[0].modes.autocast_enabled);
}

}  // namespace
}  // namespace foregrad
