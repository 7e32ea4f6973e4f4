#include "api/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/parser.h"

namespace foregrad::detail {
namespace {

TEST(Describe, WritesGraphsSignatureGuardsAndSavedBytes) {
  Compilation made;
  made.forward = parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::exp(%0)
  output %1 = output(0)
  output %1 = saved(%1)
})");
  made.joint = made.forward;
  made.guards = std::make_unique<Guards>(std::vector<const at::Tensor*>{}, made.lifted);
  made.stages = {{"record", 1.5}, {"joint", 2.0}};
  const auto text = describe(made);
  EXPECT_THAT(text.forward_graph, ::testing::HasSubstr("aten::exp"));
  EXPECT_THAT(text.signature, ::testing::HasSubstr("forward takes user(0)"));
  EXPECT_THAT(text.guards, ::testing::HasSubstr("grad mode"));
  EXPECT_EQ(text.saved_bytes, 8u);
  EXPECT_DOUBLE_EQ(text.compile_ms, 3.5);
}

}  // namespace
}  // namespace foregrad::detail
