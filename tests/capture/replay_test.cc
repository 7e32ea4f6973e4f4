#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capture/recorder.h"
#include "capture/replay.h"
#include "graph/interpreter.h"

namespace foregrad {
namespace {

TEST(Replay, GivesForwardOutputsThenGradients) {
  const auto x = at::randn({3}).requires_grad_();
  const auto result = record(
      {.arguments = {x},
       .run =
           [](const std::vector<at::Tensor>& in) { return std::vector<at::Tensor>{in[0].exp()}; },
       .on_capture = {}});
  ViewAndMutationMeta meta;
  meta.inputs.push_back({.type = type_of(x), .requires_grad = true});
  meta.outputs.push_back(
      {.origin = NewTensor{}, .type = type_of(x), .requires_grad = true, .is_leaf = false});
  const auto joint = trace_joint(result.recording, meta, meta.tangents());
  const auto results = interpret(joint.graph, {x.detach(), at::ones({3})});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(at::equal(results[0], x.detach().exp()));
  EXPECT_TRUE(at::equal(results[1], x.detach().exp()));
  const auto forward_only = trace_joint(result.recording, meta, {});
  EXPECT_FALSE(forward_only.graph.outputs[1].value.has_value());
}

}  // namespace
}  // namespace foregrad
