#include "ops/offsets.h"

#include <gtest/gtest.h>

#include "support/graph_builder.h"

namespace foregrad {
namespace {

Recording one_operator(const char* op, int64_t offset) {
  Recording recording;
  recording.inputs.push_back({.value = ValueId{0}, .tensor = {}, .role = UserInput{}, .seen = {}});
  recording.inputs[0].seen.before = {
      .dtype = at::kFloat, .sizes = {4}, .strides = {1}, .storage_offset = offset};
  recording.ops.push_back({.op = testing::find_operator(op),
                           .args = {ValueId{0}},
                           .results = {ValueId{1}},
                           .modes = {}});
  return recording;
}

TEST(Offsets, MatterToOperatorsThatTakeThem) {
  EXPECT_TRUE(takes_offsets(one_operator("aten::as_strided", 4)));
  EXPECT_FALSE(needs_alignment(one_operator("aten::as_strided", 4)));
  EXPECT_FALSE(takes_offsets(one_operator("aten::neg", 1)));
  EXPECT_FALSE(needs_alignment(one_operator("aten::neg", 1)));
}

TEST(Offsets, MatterToWiderViewsWhereAnInputIsNotAligned) {
  EXPECT_FALSE(takes_offsets(one_operator("aten::view_as_complex", 4)));
  EXPECT_TRUE(needs_alignment(one_operator("aten::view_as_complex", 4)));
  EXPECT_TRUE(takes_offsets(one_operator("aten::view_as_complex", 1)));
  EXPECT_FALSE(needs_alignment(one_operator("aten::view_as_complex", 1)));
}

}  // namespace
}  // namespace foregrad
