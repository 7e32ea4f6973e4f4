#include "graph/recording.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "support/graph_builder.h"

namespace foregrad {
namespace {

using testing::contiguous_type;
using testing::find_operator;

RecordedOp op(const std::string& name, std::vector<Operand> args, uint32_t result) {
  return {.op = find_operator(name),
          .args = std::move(args),
          .results = {ValueId{result}},
          .modes = {}};
}

RecordedInput input(uint32_t value, InputRole role, at::Tensor tensor = {}) {
  RecordedInput input{
      .value = ValueId{value}, .tensor = std::move(tensor), .role = role, .seen = {}};
  input.seen.before = contiguous_type(at::kFloat, {2});
  return input;
}

/// Two inputs, `mul`, `add`, `neg`, one output.
Recording example(const at::Tensor& captured) {
  Recording recording;
  recording.value_count = 5;
  recording.inputs = {input(0, UserInput{{0}}), input(1, Lifted{{1}}, captured)};
  recording.ops = {op("aten::mul.Tensor", {ValueId{0}, ValueId{0}}, 2),
                   op("aten::add.Tensor", {ValueId{2}, ValueId{1}, c10::IValue(1)}, 3),
                   op("aten::neg", {ValueId{3}}, 4)};
  recording.outputs.resize(1);
  recording.outputs[0].seen.defined = true;
  recording.outputs[0].seen.value = ValueId{4};
  return recording;
}

std::optional<size_t> difference_after(const std::function<void(Recording&)>& change) {
  static const at::Tensor captured = at::ones({2});
  const Recording left = example(captured);
  Recording right = example(captured);
  change(right);
  const auto place = first_difference(left, right);
  EXPECT_EQ(place, first_difference(right, left));
  return place;
}

TEST(Recording, TheSameProgramHasNoDifference) {
  EXPECT_EQ(difference_after([](Recording&) {}), std::nullopt);
}

TEST(Recording, OperatorsDifferInAnyOfTheirParts) {
  EXPECT_EQ(difference_after([](Recording& r) { r.ops[2].op = find_operator("aten::abs"); }), 2u);
  EXPECT_EQ(difference_after([](Recording& r) { r.ops[0].args[1] = ValueId{1}; }), 0u);
  EXPECT_EQ(difference_after([](Recording& r) { r.ops[1].args[2] = c10::IValue(2); }), 1u);
  EXPECT_EQ(difference_after([](Recording& r) { r.ops[1].args[2] = c10::IValue(1.0); }), 1u);
  EXPECT_EQ(difference_after([](Recording& r) { r.ops[1].results[0] = ValueId{4}; }), 1u);
  EXPECT_EQ(difference_after([](Recording& r) { r.ops[1].modes.grad_mode = false; }), 1u);
  EXPECT_EQ(difference_after([](Recording& r) { r.ops[1].modes.inference_mode = true; }), 1u);
  EXPECT_EQ(difference_after([](Recording& r) { r.ops[1].modes.autocast_enabled = true; }), 1u);
  EXPECT_EQ(difference_after([](Recording& r) { r.ops[1].modes.autocast_dtype = at::kHalf; }), 1u);
}

TEST(Recording, OneMayBeLonger) {
  EXPECT_EQ(
      difference_after([](Recording& r) { r.ops.push_back(op("aten::neg", {ValueId{4}}, 5)); }),
      3u);
  EXPECT_EQ(difference_after([](Recording& r) { r.ops.pop_back(); }), 2u);
}

TEST(Recording, ADifferentInputShowsAtItsFirstUse) {
  EXPECT_EQ(difference_after([](Recording& r) { r.inputs[1].tensor = at::ones({2}); }), 1u);
  EXPECT_EQ(difference_after([](Recording& r) { r.inputs[0].seen.before.dtype = at::kDouble; }),
            0u);
  EXPECT_EQ(difference_after([](Recording& r) { r.inputs[1].seen.requires_grad_before = true; }),
            1u);
  EXPECT_EQ(difference_after([](Recording& r) { r.inputs[1].role = UserInput{{1}}; }), 1u);
  EXPECT_EQ(difference_after([](Recording& r) { r.inputs.pop_back(); }), 1u);
  EXPECT_EQ(difference_after(
                [](Recording& r) { r.inputs.push_back(input(9, Lifted{{2}}, at::ones({2}))); }),
            3u);
}

TEST(Recording, TheDifferentInputThatIsReadFirstCounts) {
  const at::Tensor captured = at::ones({2});
  Recording left = example(captured);
  std::swap(left.inputs[0].value,
            left.inputs[1].value);  // now the second of the list is read before the first
  Recording right = left;
  right.inputs[0].seen.before.dtype = at::kDouble;
  EXPECT_EQ(first_difference(left, right), 1u);
  right.inputs[1].seen.before.dtype = at::kDouble;
  EXPECT_EQ(first_difference(left, right), 0u);
}

TEST(Recording, OtherOutputsDifferAfterTheLastOperator) {
  EXPECT_EQ(difference_after([](Recording& r) { r.outputs[0].seen.value = ValueId{3}; }), 3u);
  EXPECT_EQ(difference_after([](Recording& r) { r.outputs[0].seen.defined = false; }), 3u);
  EXPECT_EQ(difference_after([](Recording& r) { r.outputs.clear(); }), 3u);
}

TEST(Recording, WritesAnOperator) {
  EXPECT_EQ(to_text(op("aten::mul.Tensor", {ValueId{0}, ValueId{1}}, 2)),
            "aten::mul.Tensor(%0, %1)");
  EXPECT_EQ(to_text(op("aten::add.Tensor", {ValueId{0}, ValueId{1}, c10::IValue(2.0)}, 2)),
            "aten::add.Tensor(%0, %1, alpha=2.0)");
}

TEST(Recording, WritesOperatorsWhoseLiteralsHaveNoText) {
  RecordedOp strange =
      op("aten::relu", {c10::IValue(c10::ivalue::Tuple::create({c10::IValue(1)}))}, 1);
  EXPECT_EQ(to_text(strange), "aten::relu(...)");
}

}  // namespace
}  // namespace foregrad
