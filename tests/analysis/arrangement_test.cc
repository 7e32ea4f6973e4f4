#include "analysis/arrangement.h"

#include <gtest/gtest.h>

#include "graph/refusal.h"
#include "support/graph_builder.h"

namespace foregrad {
namespace {

using testing::strided_type;

InputFacts lying(TensorType type, uint32_t storage = 0, std::optional<uint32_t> view_of = {},
                 bool is_argument = true) {
  return {.type = std::move(type),
          .storage = storage,
          .storage_bytes = 400,
          .view_of = view_of,
          .is_argument = is_argument};
}

constexpr InputWrites kNone{};
constexpr InputWrites kHidden{.data = true, .history = false, .storage = false};
constexpr InputWrites kTracked{.data = true, .history = true, .storage = false};

TEST(Arrangement, WhatIsNotWrittenLiesAlone) {
  const std::vector<InputFacts> facts = {lying(strided_type({4}, {1})),
                                         lying(strided_type({4}, {1}, 2)),
                                         lying(strided_type({4}, {2}), 1)};
  const Arrangement plain = arrange(facts, {kNone, kNone, kNone}, false);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(plain.of(i), Placement());
  EXPECT_TRUE(plain.memories.empty());
}

TEST(Arrangement, OverlappingInputsShareAMemoryIfOneIsWritten) {
  const std::vector<InputFacts> facts = {
      lying(strided_type({4}, {1}, 3)), lying(strided_type({4}, {1}, 20)),
      lying(strided_type({4}, {1}, 5)), lying(strided_type({4}, {1}), 1)};
  const Arrangement shared = arrange(facts, {kNone, kHidden, kHidden, kHidden}, false);
  ASSERT_EQ(shared.memories.size(), 1U);
  EXPECT_EQ(shared.of(0).memory, 0U);
  EXPECT_EQ(shared.of(2).memory, 0U);
  EXPECT_EQ(shared.of(1), Placement());  // in the same storage, apart
  EXPECT_EQ(shared.of(3), Placement());
  EXPECT_EQ(shared.memories[0].anchor, 0U);
  EXPECT_EQ(shared.memories[0].start, 0);
  EXPECT_EQ(shared.memories[0].type.sizes, c10::DimVector({6}));
}

TEST(Arrangement, AMemoryOfTwoDtypesIsBytesOfTheWholeStorage) {
  const std::vector<InputFacts> facts = {lying(strided_type({4}, {1}, 1)),
                                         lying(strided_type({4}, {1}, 1, at::kInt))};
  const Arrangement shared = arrange(facts, {kHidden, kNone}, false);
  ASSERT_EQ(shared.memories.size(), 1U);
  EXPECT_EQ(shared.memories[0].type.dtype, at::kByte);
  EXPECT_TRUE(shared.memories[0].is_whole_storage);
  EXPECT_EQ(shared.memories[0].type.sizes, c10::DimVector({400}));
}

TEST(Arrangement, AWrittenInputWithGapsLiesInAMemory) {
  const std::vector<InputFacts> facts = {lying(strided_type({3}, {2}, 1))};
  EXPECT_TRUE(arrange(facts, {kNone}, false).memories.empty());
  const Arrangement gaps = arrange(facts, {kHidden}, false);
  ASSERT_EQ(gaps.memories.size(), 1U);
  EXPECT_EQ(gaps.memories[0].type.sizes, c10::DimVector({5}));
}

TEST(Arrangement, ViewsAreTakenOfTheirBaseWhereItsHistoryIsReplaced) {
  // Two views of a base that is no argument, without an element in common.
  const std::vector<InputFacts> facts = {lying(strided_type({2}, {1}), 0, 2),
                                         lying(strided_type({2}, {1}, 2), 0, 2),
                                         lying(strided_type({4}, {1}), 0, {}, false)};
  const Arrangement hidden = arrange(facts, {kHidden, kNone}, false);
  EXPECT_EQ(hidden.of(0), Placement());
  EXPECT_FALSE(hidden.is_base(2));
  const Arrangement tracked = arrange(facts, {kTracked, kNone}, false);
  EXPECT_EQ(tracked.of(0).view_of, 2U);
  EXPECT_EQ(tracked.of(1).view_of, 2U);
  EXPECT_TRUE(tracked.is_base(2));
  EXPECT_TRUE(tracked.memories.empty());
}

TEST(Arrangement, OffsetsIntoAWrittenStorageTakeTheWholeOfIt) {
  const std::vector<InputFacts> facts = {lying(strided_type({4}, {1}, 2))};
  EXPECT_TRUE(arrange(facts, {kNone}, true).memories.empty());
  const Arrangement whole = arrange(facts, {kHidden}, true);
  ASSERT_EQ(whole.memories.size(), 1U);
  EXPECT_TRUE(whole.memories[0].is_whole_storage);
  EXPECT_EQ(whole.memories[0].type.sizes, c10::DimVector({100}));
}

TEST(Arrangement, ReadsWritesOfArgumentsAndCapturedTensorsOnly) {
  Recording recording;
  recording.inputs.push_back({.value = {}, .tensor = {}, .role = UserInput{}, .seen = {}});
  recording.inputs[0].seen.data_mutated = true;
  recording.inputs[0].seen.same_history = false;
  recording.inputs[0].seen.version_advance = 1;
  recording.inputs.push_back({.value = {}, .tensor = {}, .role = Lifted{{1}}, .seen = {}});
  recording.inputs[1].seen.storage_changed = true;
  recording.inputs.push_back({.value = {}, .tensor = {}, .role = ViewBase{{2}}, .seen = {}});
  EXPECT_EQ(
      writes_of(recording),
      (std::vector<InputWrites>{kTracked, {.data = false, .history = false, .storage = true}}));
}

TEST(Arrangement, ADetachedInputsViewsKeepTheirHistory) {
  Recording recording;
  recording.inputs.push_back({.value = {}, .tensor = {}, .role = UserInput{}, .seen = {}});
  recording.inputs[0].seen.same_history = false;  // `detach_`
  EXPECT_EQ(writes_of(recording), std::vector<InputWrites>{kNone});
}

TEST(Arrangement, AViewThatOverlapsItselfSharesAMemoryWithWhatItsBaseOverlaps) {
  const std::vector<InputFacts> facts = {lying(strided_type({4, 4}, {2, 2}, 4), 0, 2),
                                         lying(strided_type({18}, {1})),
                                         lying(strided_type({18}, {1}), 0, {}, false)};
  const Arrangement shared = arrange(facts, {kTracked, kHidden}, false);
  ASSERT_EQ(shared.memories.size(), 1U);
  EXPECT_EQ(shared.of(0).view_of, 2U);
  EXPECT_EQ(shared.of(1).memory, 0U);
  EXPECT_EQ(shared.of(2).memory, 0U);
}

TEST(Arrangement, AViewThatWasMadeALeafKeepsItsHistory) {
  std::vector<InputFacts> facts = {lying(strided_type({2}, {1}, 1), 0, 1),
                                   lying(strided_type({4}, {1}), 0, {}, false)};
  EXPECT_NO_THROW(check_leaf_views(facts, {kTracked}));
  facts[0].requires_grad = true;
  EXPECT_NO_THROW(check_leaf_views(facts, {kHidden}));
  EXPECT_THROW(check_leaf_views(facts, {kTracked}), Refusal);
  facts[1].requires_grad = true;
  EXPECT_NO_THROW(check_leaf_views(facts, {kTracked}));
}

}  // namespace
}  // namespace foregrad
