#include <gtest/gtest.h>
#include <torch/torch.h>

#include "analysis/views_and_mutations.h"
#include "graph/refusal.h"

namespace foregrad {
namespace {

Recording one_input_one_output(size_t input_storage, size_t output_storage, ValueId output) {
  Recording recording;
  recording.value_count = 2;
  recording.inputs.push_back(
      {.value = ValueId{0}, .tensor = {}, .role = UserInput{InputIndex{0}}, .seen = {}});
  recording.inputs[0].seen.storage = input_storage;
  recording.inputs[0].seen.hidden_from_autograd = true;
  recording.outputs.push_back({});
  recording.outputs[0].seen.defined = true;
  recording.outputs[0].seen.storage = output_storage;
  recording.outputs[0].seen.value = output;
  return recording;
}

TEST(ViewsAndMutations, TellsNewTensorsInputsAndViewsApart) {
  auto origin = [](const Recording& recording) {
    return analyze_views_and_mutations(recording).outputs[0].origin;
  };
  EXPECT_TRUE(std::holds_alternative<NewTensor>(origin(one_input_one_output(0, 1, ValueId{1}))));
  EXPECT_TRUE(std::holds_alternative<IsInput>(origin(one_input_one_output(0, 0, ValueId{0}))));
  EXPECT_TRUE(std::holds_alternative<ViewOfInput>(origin(one_input_one_output(0, 0, ValueId{1}))));
}

TEST(ViewsAndMutations, RefusesOutputsThatShareMemoryAndChangedMetadata) {
  auto shared = one_input_one_output(0, 1, ValueId{1});
  shared.outputs.push_back(shared.outputs[0]);
  shared.outputs[1].seen.value = ValueId{2};
  EXPECT_THROW(analyze_views_and_mutations(shared), Refusal);
  auto changed = one_input_one_output(0, 1, ValueId{1});
  changed.inputs[0].seen.metadata_mutated = true;
  EXPECT_THROW(analyze_views_and_mutations(changed), Refusal);
}

TEST(ViewsAndMutations, RefusesAHistoryThatChangesWithoutAWrite) {
  auto changed = one_input_one_output(0, 1, ValueId{1});
  changed.inputs[0].seen.hidden_from_autograd = false;
  EXPECT_THROW(analyze_views_and_mutations(changed), Refusal);
  changed.inputs[0].seen.data_mutated = true;
  EXPECT_NO_THROW(analyze_views_and_mutations(changed));
}

// A value that is the first part of `value`, one call of `split` each time.
void append_split(Recording& recording, ValueId value) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::split", "Tensor");
  const ValueId first{recording.value_count++}, second{recording.value_count++};
  recording.ops.push_back({.op = op,
                           .args = {value, c10::IValue(1), c10::IValue(0)},
                           .results = {ValueList{first, second}},
                           .modes = {}});
}

TEST(ViewsAndMutations, FollowsViewsToTheInput) {
  Recording recording = one_input_one_output(0, 0, ValueId{4});
  recording.value_count = 1;
  append_split(recording, ValueId{0});  // gives %1, %2
  append_split(recording, ValueId{2});  // gives %3, %4
  append_split(recording, ValueId{2});  // gives %5, %6
  const auto meta = analyze_views_and_mutations(recording);
  const auto& chain = std::get<ViewOfInput>(meta.outputs[0].origin).chain;
  ASSERT_EQ(chain.size(), 2U);
  EXPECT_EQ(std::get<ValueId>(chain[0].op.args[0]), ValueId{0});
  EXPECT_EQ(std::get<ValueId>(chain[1].op.args[0]), ValueId{2});
  EXPECT_EQ(chain[0].element, 1U);
  EXPECT_EQ(chain[1].element, 1U);

  recording.outputs.push_back(recording.outputs[0]);
  recording.outputs[1].seen.value = ValueId{0};
  recording.outputs.push_back(recording.outputs[0]);
  recording.outputs[2].seen.storage = 1;
  recording.outputs[2].seen.value = ValueId{5};
  recording.outputs.push_back(recording.outputs[2]);
  const auto outputs = analyze_views_and_mutations(recording).outputs;
  EXPECT_EQ(std::get<IsInput>(outputs[1].origin).input, InputIndex{0});
  EXPECT_TRUE(std::holds_alternative<NewTensor>(outputs[2].origin));
  EXPECT_EQ(std::get<SameAsOutput>(outputs[3].origin).output, OutputIndex{2});
}

}  // namespace
}  // namespace foregrad
