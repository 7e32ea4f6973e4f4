#include "graph/dot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/parser.h"

namespace foregrad {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kJoint = R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = tangent(output(0))
  %2: f32[2]{1} = aten::sin(%0)
  %3: f32[2]{1} = aten::cos(%0)
  backward %4: f32[2]{1} = aten::mul.Tensor(%1, %3)
  output %2 = output(0)
  output %3 = saved(%3)
  output %4 = grad(0)
  output undefined = grad(1)
}
)";

TEST(Dot, DrawsPortsNodesAndEdges) {
  EXPECT_EQ(
      to_dot(parse_graph("graph {\n input %0: f32[2]{1} = user(0)\n %1: f32[2]{1} = aten::sin(%0)\n"
                         " output %1 = output(0)\n}"),
             "sine"),
      R"dot(digraph "sine" {
  rankdir=TB;
  node [fontname="monospace", fontsize=10];
  in0 [label="user(0)\n%0: f32[2]{1}", shape=ellipse, style=filled, fillcolor="#dbe9f6"];
  n0 [label="aten::sin\n%1: f32[2]{1}", shape=box, style=filled, fillcolor="#dbe9f6"];
  in0 -> n0 [label="%0", color="#555555"];
  out0 [label="output(0)", shape=ellipse, style=filled, fillcolor="#dbe9f6"];
  n0 -> out0 [label="%1", color="#555555"];
}
)dot");
}

TEST(Dot, ColoursBackwardAndSavedValues) {
  const std::string dot = to_dot(parse_graph(kJoint), "joint");
  EXPECT_THAT(dot,
              HasSubstr("n2 [label=\"aten::mul.Tensor\\n%4: f32[2]{1}\", shape=box, style=filled, "
                        "fillcolor=\"#fde3cf\"]"));
  EXPECT_THAT(dot, HasSubstr("n1 -> n2 [label=\"%3\", color=\"#2a7f3f\", penwidth=2]"));
  EXPECT_THAT(dot, HasSubstr("n0 -> out0 [label=\"%2\", color=\"#555555\"]"));
  EXPECT_THAT(dot, HasSubstr("label=\"grad(1)\\nundefined\""));
}

TEST(Dot, IsTheSameEachTime) {
  EXPECT_EQ(to_dot(parse_graph(kJoint), "joint"), to_dot(parse_graph(kJoint), "joint"));
}

TEST(Dot, EscapesTheTitle) {
  EXPECT_THAT(to_dot(Graph{}, "a \"b\" \\"), HasSubstr("digraph \"a \\\"b\\\" \\\\\" {"));
}

TEST(Dot, DrawsValuesThatNothingDefines) {
  EXPECT_THAT(to_dot(parse_graph("graph {\n output %3 = output(0)\n}"), "broken"),
              HasSubstr("undefined3 -> out0"));
}

}  // namespace
}  // namespace foregrad
