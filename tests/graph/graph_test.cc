#include "graph/graph.h"

#include <gtest/gtest.h>

#include "support/graph_builder.h"

namespace foregrad {
namespace {

using testing::contiguous_type;
using testing::GraphBuilder;

TEST(Graph, ValuesAreNumberedInTheOrderOfTheirMaking) {
  Graph graph;
  EXPECT_EQ(add_value(graph, contiguous_type(at::kFloat, {2})), ValueId{0});
  EXPECT_EQ(add_input(graph, contiguous_type(at::kLong, {3}), UserInput{{0}}), ValueId{1});
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(graph.inputs[0].value, ValueId{1});
  EXPECT_EQ(graph.type(ValueId{1}).dtype, at::kLong);
  EXPECT_THROW(graph.type(ValueId{2}), std::out_of_range);
}

TEST(Graph, ReadsAndDefinitionsAreVisitedInOrderRepeatsIncluded) {
  GraphBuilder builder;
  const TensorType type = contiguous_type(at::kFloat, {2});
  const ValueId x = builder.input(type, UserInput{{0}});
  const ValueId y = builder.input(type, UserInput{{1}});
  builder.call("aten::cat", {ValueList{y, x, y}}, contiguous_type(at::kFloat, {6}));
  std::vector<uint32_t> reads, definitions;
  for_each_read(builder.graph.nodes[0], [&](ValueId value) { reads.push_back(value.index); });
  for_each_definition(builder.graph.nodes[0],
                      [&](ValueId value) { definitions.push_back(value.index); });
  EXPECT_EQ(reads, (std::vector<uint32_t>{1, 0, 1}));
  EXPECT_EQ(definitions, (std::vector<uint32_t>{2}));
}

TEST(Graph, VisitorsMayRewriteValues) {
  GraphBuilder builder;
  const TensorType type = contiguous_type(at::kFloat, {2});
  const ValueId x = builder.input(type, UserInput{{0}});
  const ValueId y = builder.input(type, UserInput{{1}});
  builder.call("aten::mul.Tensor", {x, x}, type);
  for_each_read(builder.graph.nodes[0], [&](ValueId& value) { value = y; });
  EXPECT_EQ(std::get<ValueId>(builder.graph.nodes[0].args[1]), y);
}

TEST(Graph, ProducersAreNodesAndInputsHaveNone) {
  GraphBuilder builder;
  const TensorType type = contiguous_type(at::kFloat, {2});
  const ValueId x = builder.input(type, UserInput{{0}});
  const ValueId halves[] = {add_value(builder.graph, contiguous_type(at::kFloat, {1})),
                            add_value(builder.graph, contiguous_type(at::kFloat, {1}))};
  builder.call("aten::neg", {x}, type);
  builder.node("aten::split.Tensor", {x, c10::IValue(1)}, {ValueList{halves[0], halves[1]}});
  const auto producer = producers(builder.graph);
  EXPECT_EQ(producer[x.index], std::nullopt);
  EXPECT_EQ(producer[halves[1].index], NodeId{1});
  EXPECT_EQ(producer[3], NodeId{0});
}

TEST(Graph, OperatorTextHasNamespaceAndOverload) {
  EXPECT_EQ(operator_text(testing::find_operator("aten::add.Tensor")), "aten::add.Tensor");
  EXPECT_EQ(operator_text(testing::find_operator("aten::relu")), "aten::relu");
}

}  // namespace
}  // namespace foregrad
