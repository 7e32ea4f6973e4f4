#include "graph/printer.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "graph/parser.h"
#include "support/graph_builder.h"

namespace foregrad {
namespace {

using testing::contiguous_type;
using testing::find_operator;
using testing::GraphBuilder;

std::string call(const std::string& op, std::vector<Operand> args) {
  std::vector<at::Generator> generators;
  return call_to_text(find_operator(op), args, generators);
}

TEST(Printer, WritesTheGraphOfTheContract) {
  GraphBuilder builder;
  const TensorType matrix = contiguous_type(at::kFloat, {2, 3});
  const ValueId x = builder.input(matrix, UserInput{{0}});
  const ValueId tangent = builder.input(matrix, Tangent{UserOutput{{0}}});
  const ValueId square = builder.call("aten::mul.Tensor", {x, x}, matrix);
  const ValueId maximum = add_value(builder.graph, contiguous_type(at::kFloat, {2}));
  const ValueId place = add_value(builder.graph, contiguous_type(at::kLong, {2}));
  builder.node("aten::max.dim", {square, c10::IValue(1)}, {maximum, place});
  const ValueId upper = add_value(builder.graph, contiguous_type(at::kFloat, {1, 3}));
  const ValueId lower = add_value(builder.graph, contiguous_type(at::kFloat, {1, 3}));
  builder.node("aten::split.Tensor", {x, c10::IValue(1)}, {ValueList{upper, lower}});
  builder.call("aten::mul.Tensor", {tangent, x}, matrix);
  builder.graph.nodes.back().phase = Phase::Backward;
  builder.graph.nodes.back().overwrites = 0;
  builder.output(square, UserOutput{{0}});
  builder.output(std::nullopt, Grad{{0}});
  EXPECT_EQ(print_graph(builder.graph), R"(graph {
  input %0: f32[2,3]{3,1} = user(0)
  input %1: f32[2,3]{3,1} = tangent(output(0))
  %2: f32[2,3]{3,1} = aten::mul.Tensor(%0, %0)
  %3: f32[2]{1}, %4: i64[2]{1} = aten::max.dim(%2, dim=1)
  [%5: f32[1,3]{3,1}, %6: f32[1,3]{3,1}] = aten::split.Tensor(%0, split_size=1)
  backward %7: f32[2,3]{3,1} = aten::mul.Tensor(%1, %0) overwrites 0
  output %2 = output(0)
  output undefined = grad(0)
}
)");
}

TEST(Printer, LeavesOutDefaultsAndNamesWhatFollows) {
  const Operand none = c10::IValue();
  EXPECT_EQ(call("aten::add.Tensor", {ValueId{0}, ValueId{1}, c10::IValue(1)}),
            "aten::add.Tensor(%0, %1)");
  EXPECT_EQ(call("aten::add.Tensor", {ValueId{0}, ValueId{1}, c10::IValue(1.0)}),
            "aten::add.Tensor(%0, %1, alpha=1.0)");
  EXPECT_EQ(call("aten::clamp.Tensor", {ValueId{0}, none, ValueId{1}}),
            "aten::clamp.Tensor(%0, max=%1)");
  EXPECT_EQ(call("aten::sum.dim_IntList",
                 {ValueId{0}, c10::IValue(std::vector<int64_t>{1}), c10::IValue(true), none}),
            "aten::sum.dim_IntList(%0, dim=[1], keepdim=true)");
}

TEST(Printer, NamesDtypesLayoutsAndMemoryFormats) {
  const Operand none = c10::IValue();
  EXPECT_EQ(call("aten::_to_copy", {ValueId{0}, c10::IValue(at::kDouble), c10::IValue(at::kStrided),
                                    c10::IValue(c10::Device("cpu")), none, c10::IValue(true),
                                    c10::IValue(at::MemoryFormat::Preserve)}),
            "aten::_to_copy(%0, dtype=f64, layout=strided, device=cpu, non_blocking=true, "
            "memory_format=preserve)");
}

TEST(Printer, WritesAbsentEntriesOfLists) {
  EXPECT_EQ(call("aten::index.Tensor", {ValueId{0}, ValueList{std::nullopt, ValueId{1}}}),
            "aten::index.Tensor(%0, [none, %1])");
  EXPECT_EQ(call("aten::cat", {ValueList{}, c10::IValue(0)}), "aten::cat([])");
}

TEST(Printer, WritesUndefinedAndMissingResults) {
  Graph graph;
  graph.nodes.push_back(
      {.op = find_operator("aten::relu"), .args = {ValueId{0}}, .results = {c10::IValue()}});
  graph.nodes.push_back({.op = find_operator("aten::relu"), .args = {ValueId{0}}, .results = {}});
  EXPECT_EQ(print_graph(graph),
            "graph {\n  undefined = aten::relu(%0)\n  () = aten::relu(%0)\n}\n");
}

TEST(Printer, NumbersGeneratorsAcrossTheGraph) {
  const at::Generator first = at::detail::createCPUGenerator(),
                      second = at::detail::createCPUGenerator();
  GraphBuilder builder;
  const TensorType type = contiguous_type(at::kFloat, {2});
  const ValueId x = builder.input(type, UserInput{{0}});
  for (const auto& generator : {second, first, second}) {
    builder.call("aten::bernoulli", {x, c10::IValue(generator)}, type);
  }
  std::vector<at::Generator> generators = {first};
  const std::string text = print_graph(builder.graph, generators);
  EXPECT_EQ(generators, (std::vector<at::Generator>{first, second}));
  EXPECT_NE(text.find("%1: f32[2]{1} = aten::bernoulli(%0, generator=generator#1)"), text.npos)
      << text;
  EXPECT_NE(text.find("%2: f32[2]{1} = aten::bernoulli(%0, generator=generator#0)"), text.npos)
      << text;
  EXPECT_TRUE(testing::graphs_equal(parse_graph(text, generators), builder.graph));
}

TEST(Printer, WritesBrokenGraphsToo) {
  Graph graph;
  graph.inputs.push_back({ValueId{9}, UserInput{{0}}});
  graph.nodes.push_back(
      {.op = find_operator("aten::relu"), .args = {ValueId{0}, c10::IValue(1)}, .results = {}});
  EXPECT_EQ(print_graph(graph),
            "graph {\n  input %9: unknown = user(0)\n  () = aten::relu(%0, 1)\n}\n");
}

}  // namespace
}  // namespace foregrad
