#include "graph/parser.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/printer.h"
#include "support/graph_builder.h"

namespace foregrad {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void expect_round_trip(const std::string& text) { EXPECT_EQ(print_graph(parse_graph(text)), text); }

void expect_error(const std::string& text, const std::string& place, const std::string& expected) {
  EXPECT_THAT([&] { parse_graph(text); },
              ThrowsMessage<c10::Error>(
                  AllOf(HasSubstr("graph text, " + place + ":"), HasSubstr(expected))))
      << text;
}

/// An error in the only statement of a graph: `column` counts within it.
void expect_statement_error(const std::string& statement, size_t column,
                            const std::string& expected) {
  expect_error("graph {\n" + statement + "\n}\n", "line 2, column " + std::to_string(column),
               expected);
}

TEST(Parser, EveryRoleRoundTrips) {
  expect_round_trip(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = lifted(1)
  input %2: f32[2]{1} = view_base(2)
  input %3: f32[2]{1} = tangent(output(3))
  input %4: f32[2]{1} = tangent(mutated(4))
  input %5: f32[2]{1} = tangent(intermediate_base(5))
  input %6: f32[2]{1} = saved(%17)
  output %0 = output(0)
  output %1 = mutated(1)
  output %2 = intermediate_base(2)
  output %3 = grad(3)
  output undefined = grad(4)
  output %6 = saved(%6)
}
)");
}

TEST(Parser, EveryPartOfATypeRoundTrips) {
  expect_round_trip(R"(graph {
  input %0: f32[]{} = user(0)
  input %1: i64[2,0,3]{3,3,1} = user(1)
  input %2: bf16[4]{-1}+3 = user(2)
  input %3: c64[4]{1} conj = user(3)
  input %4: f64[4]{2}+1 neg = user(4)
  input %5: c128[4]{2}+1@cuda:1 conj neg = user(5)
  input %6: bool[1]{1}@meta = user(6)
}
)");
}

TEST(Parser, EveryFormOfResultRoundTrips) {
  expect_round_trip(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2]{1}, undefined = aten::max.dim(%0, dim=1)
  [%2: f32[1,2]{2,1}, undefined] = aten::split.Tensor(%0, split_size=1)
  [] = aten::split.Tensor(%0, split_size=1)
  undefined = aten::relu(%0)
  () = aten::_assert_async(%0)
  backward %3: f32[2,2]{2,1} = aten::relu(%0) overwrites 0
}
)");
}

TEST(Parser, SkipsBlankLinesAndCommentsAndJoinsLines) {
  const Graph graph = parse_graph(R"(# a graph
graph {

  input %0: f32[2]{1} = user(0)  # the only input
  %1: f32[4]{1} =
      aten::cat([%0,
                 %0])
  output %1 = output(0)
}
# the end
)");
  EXPECT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(std::get<ValueList>(graph.nodes[0].args[0]).size(), 2u);
}

TEST(Parser, FillsInDefaultsWhereverTheyWereLeftOut) {
  const std::string start = "graph {\n  input %0: f32[2]{1} = user(0)\n  %1: f32[2]{1} = ";
  const auto node = [&](const std::string& call) {
    return parse_graph(start + call + "\n}").nodes[0];
  };
  const Node added = node("aten::add.Tensor(%0, %0)");
  EXPECT_TRUE(operands_equal(added.args[2], c10::IValue(1)));
  const Node full = node("aten::sum.dim_IntList(%0, dim=[0], keepdim=false, dtype=none)");
  const Node brief = node("aten::sum.dim_IntList(%0, dim=[0])");
  const Node positional = node("aten::sum.dim_IntList(%0, [0], false)");
  for (size_t i = 0; i < full.args.size(); ++i) {
    EXPECT_TRUE(operands_equal(full.args[i], brief.args[i]));
    EXPECT_TRUE(operands_equal(full.args[i], positional.args[i]));
  }
  const Node skipped = node("aten::clamp.Tensor(%0, max=%0)");
  EXPECT_TRUE(std::get<c10::IValue>(skipped.args[1]).isNone());
  EXPECT_EQ(std::get<ValueId>(skipped.args[2]), ValueId{0});
}

TEST(Parser, ValuesThatNothingDefinesAreInTheTable) {
  EXPECT_EQ(parse_graph("graph {\n output %5 = output(0)\n}").values.size(), 6u);
}

TEST(Parser, StructuralErrorsNameLineAndColumn) {
  expect_error("", "line 1, column 1", "expected `graph`, got the end of the text");
  expect_error("graph [", "line 1, column 7", "expected `{`, got `[`");
  expect_error("graph {\n", "line 2, column 1", "got the end of the text");
  expect_error("graph {\n}\nmore", "line 3, column 1", "expected the end of the text, got `more`");
  expect_statement_error("  surprise %0", 3, "expected `input`, `output`, `backward`");
  expect_statement_error("input %0 f32[]{} = user(0)", 10, "expected `:`, got `f32`");
  expect_statement_error("input 0: f32[]{} = user(0)", 7, "expected a value, got `0`");
  expect_statement_error("input %x: f32[]{} = user(0)", 8, "the number of a value");
  expect_statement_error("input %99999999: f32[]{} = user(0)", 8, "a value up to");
}

TEST(Parser, ErrorsInTypesNameLineAndColumn) {
  expect_statement_error("input %0: float[]{} = user(0)", 11, "a dtype");
  expect_statement_error("input %0: f32[2 3]{} = user(0)", 17, "`,` or `]`");
  expect_statement_error("input %0: f32[2]{1,1} = user(0)", 17, "as many strides as sizes");
  expect_statement_error("input %0: f32[2]{1}@toaster = user(0)", 21, "a device");
}

TEST(Parser, ErrorsInRolesNameLineAndColumn) {
  expect_statement_error("input %0: f32[]{} = output(0)", 21, "`user(`, `lifted(`");
  expect_statement_error("input %0: f32[]{} = tangent(grad(0))", 29, "`output(`, `mutated(`");
  expect_statement_error("input %0: f32[]{} = user(x)", 26, "a number");
  expect_statement_error("output %0 = user(0)", 13, "`grad(`");
  expect_statement_error("output none = output(0)", 8, "a value or `undefined`");
}

TEST(Parser, ErrorsInCallsNameLineAndColumn) {
  expect_statement_error("%0: f32[]{} = aten::nothing(%1)", 15, "not `aten::nothing`");
  expect_statement_error("%0: f32[]{} = relu(%1)", 15, "not `relu`");
  expect_statement_error("%0: f32[]{} = aten::relu()", 26, "argument `self` of `aten::relu`");
  expect_statement_error("%0: f32[]{} = aten::relu(%1, %1)", 30, "at most 1 argument");
  expect_statement_error("%0: f32[]{} = aten::relu(%1 %1)", 29, "`,` or `)`");
  expect_statement_error("%0: f32[]{} = aten::add.Tensor(%1, %1, beta=1)", 40,
                         "an argument of `aten::add.Tensor`");
  expect_statement_error("%0: f32[]{} = aten::add.Tensor(%1, other=%1, self=%1)", 46,
                         "that is not given yet");
  expect_statement_error("%0: f32[]{} = aten::add.Tensor(%1, 1)", 36, "`constant(`");
  expect_statement_error("%0: f32[]{} = aten::cat(%1 dim=0)", 28, "`,` or `)`");
  expect_statement_error("%0: f32[]{} = aten::cat(5)", 25, "`[` or `none`");
  expect_statement_error("%0: f32[]{} = aten::cat([5])", 26, "a value or `none`");
  expect_statement_error("%0: f32[]{} = aten::relu(%1) overwrites x", 41,
                         "the place of an argument");
}

}  // namespace
}  // namespace foregrad
