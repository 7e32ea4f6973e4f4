// Each test breaks one rule in a graph that is good without the change.
#include "graph/verifier.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/parser.h"
#include "support/graph_builder.h"

namespace foregrad {
namespace {

using ::testing::AllOf;
using testing::contiguous_type;
using testing::find_operator;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::string_view kWithBackward = R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = tangent(output(0))
  input %2: f32[2]{1} = tangent(mutated(0))
  %3: f32[2]{1} = aten::sin(%0)
  %4: f32[2]{1} = aten::cos(%0)
  [%5: f32[1]{1}, %6: f32[1]{1}] = aten::split.Tensor(%3, split_size=1)
  backward %7: f32[2]{1} = aten::mul.Tensor(%1, %4) overwrites 1
  backward %8: f32[2]{1} = aten::add.Tensor(%7, %2)
  output %3 = output(0)
  output %3 = mutated(0)
  output %8 = grad(0)
  output undefined = grad(1)
}
)";
constexpr size_t kSin = 0, kCos = 1, kSplit = 2, kMul = 3, kAdd = 4;

Graph joint() { return parse_graph(kWithBackward); }

void expect_broken(const Graph& graph, const std::string& rule, const std::string& place = "") {
  EXPECT_THAT([&] { verify(graph, "a stage"); },
              ThrowsMessage<c10::Error>(AllOf(HasSubstr("graph after `a stage`: " + rule),
                                              HasSubstr(place), HasSubstr("graph {\n"))));
}

TEST(Verifier, AcceptsGoodGraphs) {
  EXPECT_NO_THROW(verify(joint(), "test"));
  EXPECT_NO_THROW(verify(Graph{}, "test"));
}

TEST(Verifier, AValueIsDefinedOnce) {
  Graph twice = joint();
  twice.nodes[kCos].results = {ValueId{3}};
  expect_broken(twice, "a value is defined once: %3", "at `aten::cos(%0)`");
  Graph input = joint();
  input.nodes[kCos].results = {ValueId{0}};
  expect_broken(input, "a value is defined once: %0");
  Graph inputs = joint();
  inputs.inputs[1].value = ValueId{0};
  expect_broken(inputs, "a value is defined once: %0");
  Graph in_one_list = joint();
  in_one_list.nodes[kSplit].results = {ValueList{ValueId{5}, ValueId{5}}};
  expect_broken(in_one_list, "a value is defined once: %5");
}

TEST(Verifier, AValueIsDefinedBeforeItIsRead) {
  Graph later = joint();
  later.nodes[kSin].args = {ValueId{4}};
  expect_broken(later, "a value is defined before it is read: %4", "at `aten::sin(%4)`");
  Graph itself = joint();
  itself.nodes[kSin].args = {ValueId{3}};
  expect_broken(itself, "a value is defined before it is read: %3");
  Graph output = joint();
  add_value(output, contiguous_type(at::kFloat, {2}));
  output.outputs[0].value = ValueId{9};
  expect_broken(output, "a value is defined before it is read: %9");
  Graph in_a_list = parse_graph("graph {\n %1: f32[2]{1} = aten::cat([%0])\n}");
  expect_broken(in_a_list, "a value is defined before it is read: %0");
}

TEST(Verifier, AValueIsInTheTable) {
  Graph read = joint();
  read.nodes[kSin].args = {ValueId{99}};
  expect_broken(read, "a value is in the table of 9 values: %99");
  Graph defined = joint();
  defined.nodes[kSin].results = {ValueId{99}};
  expect_broken(defined, "a value is in the table of 9 values: %99");
  Graph output = joint();
  output.outputs[0].value = ValueId{99};
  expect_broken(output, "a value is in the table of 9 values: %99");
}

TEST(Verifier, ATypeHasAsManyStridesAsSizes) {
  Graph graph = joint();
  graph.values[3].strides = {2, 1};
  expect_broken(graph, "a type has as many strides as sizes: %3");
}

TEST(Verifier, OperandsAreAsManyAsTheSchemaSays) {
  Graph arguments = joint();
  arguments.nodes[kSin].args.push_back(c10::IValue());
  expect_broken(arguments,
                "a node has one operand for each argument of the schema: expected 1, got 2");
  Graph results = joint();
  results.nodes[kSin].results.clear();
  expect_broken(results, "a node has one operand for each return of the schema: expected 1, got 0");
}

TEST(Verifier, ArgumentsAreOfTheSchemasKind) {
  const auto broken = [](size_t node, size_t argument, Operand operand,
                         const std::string& expected) {
    Graph graph = joint();
    graph.nodes[node].args[argument] = std::move(operand);
    expect_broken(graph, "an operand is as the schema says: expected " + expected);
  };
  broken(kAdd, 2, ValueId{0}, "`number` for argument `alpha`, got a value");
  broken(kAdd, 2, c10::IValue("1"), "`number` for argument `alpha`, got a literal `String`");
  broken(kAdd, 0, c10::IValue(1), "`Tensor` for argument `self`, got a literal `Int`");
  broken(kAdd, 0, ValueList{ValueId{0}}, "`Tensor` for argument `self`, got a list of values");
  broken(kSplit, 1, c10::IValue(1.0), "`int` for argument `split_size`, got a literal `Double`");
  broken(kSplit, 1, c10::IValue(), "`int` for argument `split_size`, got a literal `None`");
  Graph list =
      parse_graph("graph {\n input %0: f32[2]{1} = user(0)\n %1: f32[2]{1} = aten::cat([%0])\n}");
  EXPECT_NO_THROW(verify(list, "test"));
  list.nodes[0].args[0] = ValueId{0};
  expect_broken(list, "an operand is as the schema says: expected `List[Tensor]`");
}

TEST(Verifier, ResultsAreOfTheSchemasKind) {
  Graph list = joint();
  list.nodes[kSplit].results = {ValueId{5}};
  expect_broken(list, "a result is as the schema says: expected `List[Tensor]` for result 0");
  Graph tensor = joint();
  tensor.nodes[kSin].results = {ValueList{ValueId{3}}};
  expect_broken(tensor, "a result is as the schema says: expected `Tensor`");
  Graph literal = joint();
  literal.nodes[kSin].results = {c10::IValue(1)};
  expect_broken(literal, "a result is as the schema says");
}

TEST(Verifier, RolesDoNotRepeat) {
  Graph inputs = joint();
  inputs.inputs[2].role = Tangent{UserOutput{{0}}};
  expect_broken(inputs, "no two inputs have one role: `tangent(output(0))`");
  Graph outputs = joint();
  outputs.outputs[3].role = Grad{{0}};
  expect_broken(outputs, "no two outputs have one role: `grad(0)`");
  Graph saved = joint();
  saved.outputs[0].role = saved.outputs[1].role = Saved{{3}};
  expect_broken(saved, "no two outputs have one role: `saved(%3)`");
}

TEST(Verifier, RolesOfOneNumberAreDifferentRoles) {
  EXPECT_NO_THROW(verify(parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = lifted(0)
  input %2: f32[2]{1} = view_base(0)
  input %3: f32[2]{1} = saved(%0)
  input %4: f32[2]{1} = tangent(output(0))
  input %5: f32[2]{1} = tangent(mutated(0))
  input %6: f32[2]{1} = tangent(intermediate_base(0))
  output %0 = output(0)
  output %0 = mutated(0)
  output %0 = intermediate_base(0)
  output %0 = grad(0)
  output %0 = saved(%0)
})"),
                         "test"));
}

TEST(Verifier, NoNodeMutates) {
  Graph graph = joint();
  graph.nodes[kSin].op = find_operator("aten::sin_");
  expect_broken(graph, "no node mutates: the schema writes argument `self`");
  Graph out_variant = joint();
  out_variant.nodes[kSin].op = find_operator("aten::sin.out");
  out_variant.nodes[kSin].args.push_back(ValueId{1});
  expect_broken(out_variant, "no node mutates: the schema writes argument `out`");
}

TEST(Verifier, ALiteralTensorIsAConstant) {
  const auto with_literal = [](const at::Tensor& tensor) {
    Graph graph = joint();
    graph.nodes[kAdd].args[1] = c10::IValue(tensor);
    return graph;
  };
  const std::string rule = "a literal tensor is a zero-dimensional CPU constant: argument `other`";
  EXPECT_NO_THROW(verify(with_literal(at::scalar_tensor(1.0)), "test"));
  const auto expect_refused = [&](const at::Tensor& tensor) {
    EXPECT_THAT([&] { verify(with_literal(tensor), "test"); },
                ThrowsMessage<c10::Error>(HasSubstr(rule)));
  };
  expect_refused(at::ones({1}));
  expect_refused(at::empty({}, at::device(at::kMeta)));
  expect_refused(at::Tensor());
}

TEST(Verifier, NothingReadsAnOverwrittenValueLater) {
  Graph node = joint();
  node.nodes[kAdd].args[1] = ValueId{4};
  expect_broken(node, "`overwrites` names a value that nothing reads later: %4");
  Graph output = joint();
  output.outputs[1].value = ValueId{4};
  expect_broken(output, "`overwrites` names a value that nothing reads later: %4");
  Graph in_a_list = parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::sin(%0)
  %2: f32[2]{1} = aten::cos(%1) overwrites 0
  %3: f32[4]{1} = aten::cat([%1, %1])
})");
  expect_broken(in_a_list, "`overwrites` names a value that nothing reads later: %1");
}

TEST(Verifier, OverwritesNamesAValueThatIsNotTheCallers) {
  Graph beyond = joint();
  beyond.nodes[kMul].overwrites = 2;
  expect_broken(beyond, "`overwrites` names an argument that is a value: 2");
  Graph literal = joint();
  literal.nodes[kAdd].overwrites = 2;
  expect_broken(literal, "`overwrites` names an argument that is a value: 2");
  Graph primal = joint();
  primal.nodes[kCos].overwrites = 0;
  expect_broken(primal, "`overwrites` does not name a tensor of the caller: %0");
  Graph tangent = joint();
  tangent.nodes[kMul].overwrites = 0;
  EXPECT_NO_THROW(verify(tangent, "test"));
}

TEST(Verifier, NoForwardNodeReadsWhatBackwardDefines) {
  Graph graph = joint();
  graph.nodes[kAdd].phase = Phase::Forward;
  expect_broken(graph, "no forward node reads what a backward node defines: %7",
                "at `aten::add.Tensor(%7, %2)`");
}

TEST(Verifier, GraphsWithoutTextAreReportedAllTheSame) {
  Graph graph = joint();
  graph.nodes[kAdd].args[2] = c10::ivalue::Tuple::create({c10::IValue(1)});
  EXPECT_THAT([&] { verify(graph, "test"); },
              ThrowsMessage<c10::Error>(AllOf(HasSubstr("got a literal `Tuple`"),
                                              HasSubstr("at `aten::add.Tensor`"),
                                              HasSubstr("(no text: "))));
}

}  // namespace
}  // namespace foregrad
