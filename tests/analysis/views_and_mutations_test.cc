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

}  // namespace
}  // namespace foregrad
