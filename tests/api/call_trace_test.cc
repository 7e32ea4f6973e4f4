#include "api/call_trace.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "analysis/views_and_mutations.h"
#include "capture/recorder.h"
#include "graph/refusal.h"

namespace foregrad::detail {
namespace {

using Tensors = std::vector<at::Tensor>;

CallTrace traced_call(const std::function<Tensors(const Tensors&)>& run) {
  const Recording recording =
      record({.arguments = {at::ones({2}).requires_grad_()}, .run = run, .on_capture = {}})
          .recording;
  return trace_call(recording, analyze_views_and_mutations(recording), {});
}

/// A result whose history leads to a hook on one that a write has replaced.
at::Tensor hooked_and_written(const at::Tensor& x) {
  at::Tensor y = x * 2;
  y.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
  return y.mul_(x);
}

TEST(CallTrace, AHookBelongsToTheNodeThatCallsIt) {
  const CallTrace trace = traced_call([](const Tensors& in) -> Tensors {
    const at::Tensor y = hooked_and_written(in[0]);
    return {y, y * 2};
  });
  ASSERT_EQ(trace.stages.size(), 2U);
  EXPECT_EQ(trace.hooks.by_node, (std::vector<std::set<uint32_t>>{{0}, {}}));
  EXPECT_TRUE(trace.hooks.others(0).empty());
  EXPECT_EQ(trace.hooks.others(1), std::set<uint32_t>{0});
}

TEST(CallTrace, AHookThatSeveralNodesCallIsRefused) {
  EXPECT_THROW(traced_call([](const Tensors& in) -> Tensors {
                 at::Tensor y = in[0] * 2;
                 y.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
                 const at::Tensor first = y * 3;
                 const at::Tensor second = first * y;
                 y.mul_(2);
                 return {first, second};
               }),
               Refusal);
}

}  // namespace
}  // namespace foregrad::detail
