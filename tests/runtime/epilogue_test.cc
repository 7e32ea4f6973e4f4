#include "runtime/epilogue.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

InputInfo info_of(const at::Tensor& tensor) {
  InputInfo info{.type = type_of(tensor)};
  info.data_mutated = true;
  return info;
}

MemorySpan span_over(int64_t start, int64_t count) {
  return {.anchor = 0, .type = {.sizes = {count}, .strides = {1}}, .start = start};
}

TEST(Epilogue, AWriteBackIsSeenByNeitherVersionsNorAutograd) {
  const auto x = at::zeros({2}).requires_grad_();
  ViewAndMutationMeta meta;
  meta.inputs = {info_of(x)};
  const auto version = x._version();
  write_back(meta, {0}, std::vector{x}, at::ones({2}));
  EXPECT_TRUE(at::equal(x.detach(), at::ones({2})));
  EXPECT_EQ(x._version(), version);
  EXPECT_TRUE(x.is_leaf());
}

TEST(Epilogue, AMemoryIsWrittenWhereItsPartsAre) {
  const auto base = at::zeros({10});
  const auto first = base.slice(0, 2, 6), second = base.slice(0, 4, 9, 2);
  ViewAndMutationMeta meta;
  meta.inputs = {info_of(first), info_of(second)};
  InputInfo& memory = meta.inputs.emplace_back();
  memory.span = span_over(0, 7);
  memory.type = memory.span.type;
  memory.written_parts = {{1}};
  std::vector<at::Tensor> inputs{first, second};
  append_found_inputs(meta, inputs);
  ASSERT_EQ(inputs.size(), 3U);
  EXPECT_TRUE(inputs[2].is_alias_of(base));
  EXPECT_EQ(inputs[2].storage_offset(), 2);
  write_back(meta, {2}, inputs, at::arange(1, 8, at::kFloat));
  EXPECT_TRUE(at::equal(base, at::tensor({0., 0., 0., 0., 3., 0., 5., 0., 7., 0.}, at::kFloat)));
}

TEST(Epilogue, ViewBasesAreFoundThroughTheirViews) {
  const auto base = at::zeros({4});
  ViewAndMutationMeta meta;
  meta.inputs.resize(2);
  std::vector<at::Tensor> inputs{base.slice(0, 1, 2)};
  append_found_inputs(meta, inputs);
  EXPECT_TRUE(inputs[1].is_same(base));
}

TEST(Epilogue, BringsAboutEffectsInOrderAndTakesAliases) {
  const auto x = at::ones({2, 3});
  ViewAndMutationMeta meta;
  meta.inputs = {info_of(x)};
  meta.slot_count = 3;
  const auto transpose = c10::Dispatcher::singleton().findSchemaOrThrow("aten::transpose", "int");
  meta.effects = {CallAgain{{.op = transpose,
                             .args = {ValueId{0}, c10::IValue(0), c10::IValue(1)},
                             .results = {ValueId{1}},
                             .modes = {}}},
                  AdvanceVersion{{1}, 2},
                  TakeStrided{{1}, {2}, {.sizes = {2}, .strides = {3}, .storage_offset = 1}}};
  meta.outputs = {{.origin = ViewOfInput{{0}, {1}}, .type = {}},
                  {.origin = IsInput{{0}}, .type = {}},
                  {.origin = SameAsOutput{{0}}, .type = {}},
                  {.origin = ViewOfIntermediate{{0}, {2}}, .type = {}},
                  {.origin = UndefinedOutput{}, .type = {}}};
  const auto version = x._version();
  std::vector<at::Tensor> slots{x};
  bring_about(meta, slots, {});
  std::vector<at::Tensor> outputs(5);
  take_aliases(meta, slots, outputs);
  EXPECT_EQ(outputs[0].sizes(), at::IntArrayRef({3, 2}));
  EXPECT_TRUE(outputs[1].is_same(x));
  EXPECT_TRUE(outputs[2].is_same(outputs[0]));
  EXPECT_EQ(outputs[3].storage_offset(), 1);
  EXPECT_FALSE(outputs[4].defined());
  EXPECT_EQ(x._version(), version + 2);
}

}  // namespace
}  // namespace foregrad
