#include "graph/effects.h"

#include <gtest/gtest.h>

#include "support/graph_builder.h"

namespace foregrad {
namespace {

CallAgain view_call(uint32_t self, bool grad_mode = true) {
  return {{.op = testing::find_operator("aten::view"),
           .args = {ValueId{self}, c10::IValue(std::vector<int64_t>{6})},
           .results = {ValueId{7}},
           .modes = {.grad_mode = grad_mode}}};
}

TEST(Effects, CallsAreEqualIfTheyDoTheSame) {
  EXPECT_EQ(view_call(0), view_call(0));
  EXPECT_FALSE(view_call(0) == view_call(1));
  EXPECT_FALSE(view_call(0) == view_call(0, false));
  CallAgain other = view_call(0);
  other.op.history = 3;
  EXPECT_EQ(view_call(0), other);
  other.op.op = testing::find_operator("aten::reshape");
  EXPECT_FALSE(view_call(0) == other);
  EXPECT_FALSE(Effect(view_call(0)) == Effect(AdvanceVersion{{0}, 1}));
}

TEST(Effects, AreWrittenInWords) {
  EXPECT_EQ(to_text(Effect(view_call(3))), "%7 = aten::view(%3, size=[6])");
  EXPECT_EQ(to_text(Effect(AdvanceVersion{{4}, 2})), "%4: version +2");
  EXPECT_EQ(to_text(Effect(JoinHistory{{4}, MutatedInput{{1}}})),
            "%4: the call is its history, as mutated(1)");
  EXPECT_EQ(to_text(Effect(HoldHistory{{4}})), "%4: has a history until it is written");
  EXPECT_EQ(to_text(Effect(RefreshHistory{{4}})), "%4: takes its base's history");
  EXPECT_EQ(to_text(Effect(TakeStrided{{1}, {2}, testing::contiguous_type(at::kFloat, {2})})),
            "%2 = strided view of %1: f32[2]{1}");
}

}  // namespace
}  // namespace foregrad
