#include "analysis/find_effects.h"

#include <gtest/gtest.h>

namespace foregrad {
namespace {

c10::OperatorHandle find(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

/// A recording of one input, %0; operators are appended.
struct Example {
  Recording recording;
  Example() {
    recording.value_count = 1;
    recording.inputs.push_back({.value = {0}, .tensor = {}, .role = UserInput{}, .seen = {}});
  }
  ValueId call(const c10::OperatorHandle& op, std::vector<Operand> args) {
    const ValueId result{recording.value_count++};
    recording.ops.push_back({.op = op, .args = std::move(args), .results = {result}, .modes = {}});
    return result;
  }
  ValueId view(ValueId base) {
    const ValueId result = call(find("aten::view"), {base, c10::IValue(std::vector<int64_t>{-1})});
    const auto known = recording.view_bases.find(base);
    recording.view_bases.emplace(result,
                                 known == recording.view_bases.end() ? base : known->second);
    recording.counters.emplace(result, recording.view_bases.at(result));
    return result;
  }
  void write(ValueId value, ValueId root, bool tracked) {
    recording.ops.push_back(
        {.op = find("aten::zero_"), .args = {value}, .results = {value}, .modes = {}});
    recording.ops.back().writes.push_back(
        {.value = value,
         .counter = root,
         .version_advance = 1,
         .rewritten = tracked ? std::optional(root) : std::nullopt,
         .has_history = tracked,
         .data = true,
         .storage = false});
  }
  FoundEffects find_all(const std::vector<ValueId>& wanted) {
    recording.starts_with_history.resize(recording.value_count);
    return find_effects(recording, wanted);
  }
};

TEST(FindEffects, AWriteAdvancesTheVersionAndATrackedOneJoinsTheHistory) {
  Example example;
  example.write({0}, {0}, false);
  EXPECT_EQ(example.find_all({}).effects, (std::vector<Effect>{AdvanceVersion{{0}, 1}}));
  example.write({0}, {0}, true);
  EXPECT_EQ(example.find_all({}).effects,
            (std::vector<Effect>{AdvanceVersion{{0}, 1}, AdvanceVersion{{0}, 1},
                                 JoinHistory{{0}, MutatedInput{{0}}, 1}}));
}

TEST(FindEffects, OnlyTheLastOfSeveralTrackedWritesJoins) {
  Example example;
  example.write({0}, {0}, true);
  const ValueId view = example.view({0});
  example.write({0}, {0}, true);
  const FoundEffects found = example.find_all({view});
  ASSERT_EQ(found.effects.size(), 4U);
  EXPECT_TRUE(std::holds_alternative<AdvanceVersion>(found.effects[0]));
  EXPECT_TRUE(std::holds_alternative<CallAgain>(found.effects[1]));
  EXPECT_TRUE(std::holds_alternative<JoinHistory>(found.effects[3]));
  EXPECT_EQ(std::get<ViewOfInput>(found.origins[0]).slot, Slot{1});
  EXPECT_EQ(found.slot_count, 2U);
}

TEST(FindEffects, AWriteThroughAViewThatNobodySeesAdvancesTheVersionOfWhatIsSeen) {
  Example example;
  const ValueId view = example.view({0});
  example.write(view, {0}, false);
  EXPECT_EQ(example.find_all({}).effects, (std::vector<Effect>{AdvanceVersion{{0}, 1}}));
}

TEST(FindEffects, ViewsOfAnIntermediateNeedItAsABase) {
  Example example;
  const ValueId made = example.call(find("aten::sin"), {ValueId{0}});
  const ValueId first = example.view(made), second = example.view(first);
  const FoundEffects found = example.find_all({second});
  ASSERT_EQ(found.bases.size(), 1U);
  EXPECT_EQ(found.bases[0].value, made);
  EXPECT_EQ(found.effects.size(), 2U);
  EXPECT_EQ(std::get<ViewOfIntermediate>(found.origins[0]).base, BaseIndex{0});
  EXPECT_TRUE(example.find_all({}).effects.empty());
}

TEST(FindEffects, AViewThatNoOperatorIsDeclaredToGiveIsTakenByStrides) {
  Example example;
  const ValueId hidden = example.call(find("aten::sin"), {ValueId{0}});
  example.recording.view_bases.emplace(hidden, ValueId{example.recording.value_count++});
  example.recording.outputs.push_back({});
  example.recording.outputs[0].seen.value = hidden;
  example.recording.outputs[0].seen.type.sizes = {3};
  const FoundEffects found = example.find_all({hidden});
  ASSERT_EQ(found.bases.size(), 1U);
  ASSERT_EQ(found.effects.size(), 1U);
  EXPECT_EQ(std::get<TakeStrided>(found.effects[0]).type.sizes, c10::DimVector({3}));
}

}  // namespace
}  // namespace foregrad
