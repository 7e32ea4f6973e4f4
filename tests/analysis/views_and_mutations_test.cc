#include "analysis/views_and_mutations.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "graph/refusal.h"

namespace foregrad {
namespace {

RecordedOutput output_of(ValueId value, uint32_t storage) {
  RecordedOutput output;
  output.seen.defined = true;
  output.seen.value = value;
  output.seen.storage = storage;
  return output;
}

Recording one_input_one_output(uint32_t output_storage, ValueId output) {
  Recording recording;
  recording.value_count = 3;
  recording.starts_with_history.resize(3);
  recording.inputs.push_back({.value = {0}, .tensor = {}, .role = UserInput{{0}}, .seen = {}});
  const auto detach = c10::Dispatcher::singleton().findSchemaOrThrow("aten::detach", "");
  recording.ops.push_back(
      {.op = detach, .args = {ValueId{0}}, .results = {ValueId{1}}, .modes = {}});
  recording.outputs.push_back(output_of(output, output_storage));
  return recording;
}

TEST(ViewsAndMutations, TellsNewTensorsInputsAndAliasesApart) {
  const auto origin = [](const Recording& recording) {
    return analyze_views_and_mutations(recording).outputs[0].origin;
  };
  EXPECT_TRUE(std::holds_alternative<NewTensor>(origin(one_input_one_output(1, {1}))));
  EXPECT_TRUE(std::holds_alternative<IsInput>(origin(one_input_one_output(0, {0}))));
  EXPECT_TRUE(std::holds_alternative<ViewOfInput>(origin(one_input_one_output(0, {1}))));
  auto undefined = one_input_one_output(0, {0});
  undefined.outputs[0].seen = {};
  EXPECT_TRUE(std::holds_alternative<UndefinedOutput>(origin(undefined)));
}

TEST(ViewsAndMutations, OutputsOfOneStorageAreMadeOfOneBase) {
  auto shared = one_input_one_output(1, {1});
  shared.outputs.push_back(output_of({2}, 1));
  shared.ops.push_back(shared.ops[0]);
  shared.ops.back().args = {ValueId{1}};
  shared.ops.back().results = {ValueId{2}};
  shared.ops[0].op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::sin", "");
  shared.outputs.push_back(output_of({2}, 1));
  const auto meta = analyze_views_and_mutations(shared);
  ASSERT_EQ(meta.bases.size(), 1U);
  EXPECT_EQ(meta.bases[0].value, ValueId{1});
  EXPECT_EQ(std::get<ViewOfIntermediate>(meta.outputs[0].origin).slot, meta.bases[0].slot);
  EXPECT_TRUE(std::holds_alternative<ViewOfIntermediate>(meta.outputs[1].origin));
  EXPECT_EQ(std::get<SameAsOutput>(meta.outputs[2].origin).output, OutputIndex{1});
}

TEST(ViewsAndMutations, MemoriesAreWrittenWhereTheInputsInThemAre) {
  auto recording = one_input_one_output(1, {1});
  recording.inputs.push_back({.value = {0}, .tensor = {}, .role = UserInput{{1}}, .seen = {}});
  recording.inputs.push_back({.value = {0}, .tensor = {}, .role = Memory{{2}}, .seen = {}});
  recording.inputs[0].memory = recording.inputs[1].memory = InputIndex{2};
  EXPECT_FALSE(analyze_views_and_mutations(recording).inputs[2].data_mutated);
  recording.inputs[1].seen.data_mutated = true;
  const auto meta = analyze_views_and_mutations(recording);
  EXPECT_TRUE(meta.inputs[2].is_written_back());
  EXPECT_FALSE(meta.inputs[1].is_written_back());
  EXPECT_EQ(meta.inputs[2].written_parts, (std::vector<InputIndex>{{1}}));
}

TEST(ViewsAndMutations, AWriteToAnExpandedInputWritesItsMemoryAsAWhole) {
  for (const bool is_expanded : {false, true}) {
    auto recording = one_input_one_output(1, {1});
    recording.inputs[0].seen.before = {
        .dtype = at::kFloat, .sizes = {3}, .strides = {is_expanded ? 0 : 2}};
    recording.inputs[0].seen.data_mutated = true;
    recording.inputs[0].memory = InputIndex{1};
    RecordedInput memory = recording.inputs[0];
    memory.role = Memory{};
    memory.value = ValueId{recording.value_count++};
    memory.memory = std::nullopt;
    memory.seen.before = {.dtype = at::kFloat, .sizes = {5}, .strides = {1}};
    memory.seen.data_mutated = false;
    recording.inputs.push_back(memory);
    const auto meta = analyze_views_and_mutations(recording);
    EXPECT_TRUE(meta.inputs[1].data_mutated);
    EXPECT_EQ(meta.inputs[1].written_parts.empty(), is_expanded);
  }
}

}  // namespace
}  // namespace foregrad
