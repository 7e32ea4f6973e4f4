#include "runtime/rehearsal.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

using ::testing::HasSubstr;

/// What a call leaves that gives `x.transpose(0, 1)`.
ViewAndMutationMeta transposed() {
  const auto x = at::ones({2, 3});
  const auto view = x.t();
  ViewAndMutationMeta meta;
  meta.inputs.push_back({.type = type_of(x), .after = type_of(x)});
  meta.slot_count = 2;
  const auto transpose = c10::Dispatcher::singleton().findSchemaOrThrow("aten::transpose", "int");
  meta.effects = {CallAgain{{.op = transpose,
                             .args = {ValueId{0}, c10::IValue(0), c10::IValue(1)},
                             .results = {ValueId{1}},
                             .modes = {}}}};
  meta.outputs = {{.origin = ViewOfInput{{0}, {1}}, .type = type_of(view), .is_view = true}};
  return meta;
}

void expect_difference(const std::function<void(ViewAndMutationMeta&)>& change,
                       const std::string& words) {
  ViewAndMutationMeta meta = transposed();
  change(meta);
  const auto difference = rehearse(meta, {});
  ASSERT_TRUE(difference) << words;
  EXPECT_THAT(*difference, HasSubstr(words));
}

TEST(Rehearsal, FindsNoDifferenceWhereTheEffectsAreRight) {
  EXPECT_EQ(rehearse(transposed(), {}), std::nullopt);
}

TEST(Rehearsal, FindsWhateverIsLeftOtherwise) {
  expect_difference([](auto& meta) { meta.outputs[0].type.strides = {2, 1}; }, "output 0: `f32");
  expect_difference([](auto& meta) { meta.outputs[0].is_view = false; }, "a view true");
  expect_difference([](auto& meta) { meta.outputs[0].version = 1; }, "version 0");
  expect_difference([](auto& meta) { meta.outputs[0].requires_grad = true; },
                    "requires grad false");
  expect_difference([](auto& meta) { meta.outputs[0].storage = 1; }, "shares storage");
  expect_difference([](auto& meta) { meta.inputs[0].version_advance = 1; }, "input 0: version +0");
  expect_difference([](auto& meta) { meta.inputs[0].after.sizes = {3, 2}; }, "input 0: `f32");
  expect_difference([](auto& meta) { meta.inputs[0].requires_grad = true; },
                    "input 0: requires grad");
  expect_difference(
      [](auto& meta) { std::get<CallAgain>(meta.effects[0]).op.args[1] = c10::IValue(7); },
      "can't be brought about");
}

}  // namespace
}  // namespace foregrad
