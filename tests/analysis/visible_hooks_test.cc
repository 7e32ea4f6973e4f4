#include "analysis/visible_hooks.h"

#include <gtest/gtest.h>

#include "graph/refusal.h"

namespace foregrad {
namespace {

std::shared_ptr<RecordedNode> reads(std::vector<ValueId> values) {
  auto does = std::make_shared<RecordedNode>();
  for (const ValueId value : values) does->saved.push_back({.value = value, .result = {}});
  return does;
}

OutputObservation tensor_of_value(uint32_t value, uint32_t storage) {
  OutputObservation seen;
  seen.defined = true;
  seen.value = ValueId{value};
  seen.storage = storage;
  return seen;
}

/// Value 0 is an input, 1 an output, 2 and 3 are inside; 3 shares the memory of 1.
Recording recording_of(std::vector<RecordedHook> hooks) {
  Recording recording;
  recording.value_count = 4;
  recording.inputs.push_back({.value = ValueId{0}, .tensor = {}, .role = UserInput{}, .seen = {}});
  recording.outputs.push_back({.seen = tensor_of_value(1, 1)});
  for (uint32_t value = 1; value < 4; ++value)
    recording.hooked.emplace(ValueId{value}, tensor_of_value(value, value == 3 ? 1 : value));
  recording.hooks = std::move(hooks);
  return recording;
}

std::shared_ptr<const Recording> shared(Recording recording) {
  return std::make_shared<const Recording>(std::move(recording));
}

TEST(VisibleHooks, AreOnInputsAndOutputs) {
  const auto recording = shared(recording_of(
      {{.value = ValueId{0}, .is_on_first_history = true, .does = reads({})},
       {.value = ValueId{0}, .is_on_last_history = true, .does = reads({ValueId{0}})},
       {.value = ValueId{1}, .is_on_last_history = true, .does = reads({ValueId{1}})}}));
  EXPECT_EQ(with_hidden_outputs(recording), recording);
  const auto hooks = find_visible_hooks(*recording);
  ASSERT_EQ(hooks.size(), 3U);
  EXPECT_EQ(hooks[0].tensor, CallTensor(InputIndex{0}));
  EXPECT_TRUE(hooks[0].is_first);
  EXPECT_EQ(hooks[1].tensor, CallTensor(InputIndex{0}));
  EXPECT_FALSE(hooks[1].is_first);
  EXPECT_EQ(hooks[1].saved, std::vector<CallTensor>{InputIndex{0}});
  EXPECT_EQ(hooks[2].hook, 2U);
  EXPECT_EQ(hooks[2].saved, std::vector<CallTensor>{OutputIndex{0}});
}

TEST(VisibleHooks, OtherTensorsAndWhatTheyReadBecomeHiddenOutputs) {
  const auto recording = shared(recording_of({{.value = ValueId{2},
                                               .is_on_last_history = true,
                                               .does = reads({ValueId{3}, ValueId{0}})}}));
  EXPECT_TRUE(find_visible_hooks(*recording).empty());
  const auto shown = with_hidden_outputs(recording);
  ASSERT_EQ(shown->outputs.size(), 3U);
  EXPECT_FALSE(shown->outputs[0].is_hidden);
  EXPECT_TRUE(shown->outputs[1].is_hidden && shown->outputs[2].is_hidden);
  const auto hooks = find_visible_hooks(*shown);
  ASSERT_EQ(hooks.size(), 1U);
  EXPECT_EQ(hooks[0].tensor, CallTensor(OutputIndex{1}));
  EXPECT_EQ(hooks[0].saved, (std::vector<CallTensor>{OutputIndex{2}, InputIndex{0}}));
}

TEST(VisibleHooks, AHistoryThatWasReplacedIsRefused) {
  const auto inside = shared(recording_of({{.value = ValueId{2}, .does = reads({ValueId{2}})}}));
  EXPECT_FALSE(touches_seen_tensors(*inside, inside->hooks[0]));
  EXPECT_THROW(with_hidden_outputs(inside), Refusal);
  for (const uint32_t seen : {0U, 3U}) {
    const auto reading =
        shared(recording_of({{.value = ValueId{2}, .does = reads({ValueId{seen}})}}));
    EXPECT_TRUE(touches_seen_tensors(*reading, reading->hooks[0]));
    EXPECT_THROW(with_hidden_outputs(reading), Refusal);
  }
  auto does = reads({});
  does->backwards[1].writes = true;
  EXPECT_THROW(with_hidden_outputs(shared(recording_of({{.value = ValueId{2}, .does = does}}))),
               Refusal);
}

TEST(VisibleHooks, AnInputThatIsAViewIsRefused) {
  Recording recording =
      recording_of({{.value = ValueId{0}, .is_on_first_history = true, .does = reads({})}});
  EXPECT_EQ(find_visible_hooks(recording).size(), 1U);
  recording.inputs[0].seen.is_view = true;
  EXPECT_THROW(find_visible_hooks(recording), Refusal);
  recording.inputs[0].seen.is_view = false;
  recording.inputs[0].view_of = InputIndex{0};
  EXPECT_THROW(find_visible_hooks(recording), Refusal);
}

}  // namespace
}  // namespace foregrad
