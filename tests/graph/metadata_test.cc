#include "graph/metadata.h"

#include <gtest/gtest.h>

#include "support/graph_builder.h"

namespace foregrad {
namespace {

using testing::contiguous_type;
using testing::find_operator;

ViewStep transpose_step(uint32_t self, int64_t dim = 0) {
  return {.op = {.op = find_operator("aten::transpose.int"),
                 .args = {ValueId{self}, c10::IValue(dim), c10::IValue(1)},
                 .results = {ValueId{self + 1}},
                 .modes = {}}};
}

std::vector<OutputOrigin> all_origins() {
  return {NewTensor{},
          IsInput{{0}},
          SameAsOutput{{0}},
          ViewOfInput{{0}, {transpose_step(0)}},
          ViewOfIntermediate{{0}},
          UndefinedOutput{}};
}

/// An input for each combination of the five flags that decide roles.
InputInfo input_of(unsigned flags) {
  InputInfo info{.type = contiguous_type(at::kFloat, {2})};
  info.requires_grad = flags & 1;
  info.data_mutated = flags & 2;
  info.hidden_from_autograd = flags & 4;
  info.requires_grad_after = flags & 8;
  info.metadata_mutated = flags & 16;
  return info;
}
constexpr unsigned kInputCombinations = 32;

TEST(Metadata, WritesAreTrackedIfMutatedSeenAndRequiringGradAfter) {
  for (unsigned flags = 0; flags < kInputCombinations; ++flags) {
    const InputInfo info = input_of(flags);
    const bool expected = (flags & 2) && !(flags & 4) && (flags & 8);
    EXPECT_EQ(info.is_tracked_write(), expected) << flags;
  }
}

TEST(Metadata, PreMutationValuesAreKeptForMutatedInputsThatRequiredGrad) {
  ViewAndMutationMeta meta;
  for (unsigned flags = 0; flags < kInputCombinations; ++flags)
    meta.inputs.push_back(input_of(flags));
  for (unsigned flags = 0; flags < kInputCombinations; ++flags) {
    EXPECT_EQ(meta.keeps_pre_mutation_value({flags}), (flags & 3) == 3) << flags;
  }
  EXPECT_THROW(meta.keeps_pre_mutation_value({kInputCombinations}), std::out_of_range);
}

TEST(Metadata, ForwardOutputsAreMutatedInputsThenComputedOutputs) {
  ViewAndMutationMeta meta;
  std::vector<OutputRole> roles;
  std::vector<Differentiable> tangents;
  for (unsigned flags = 0; flags < kInputCombinations; ++flags) {
    meta.inputs.push_back(input_of(flags));
    if (flags & 2) roles.emplace_back(MutatedInput{{flags}});
    if ((flags & 2) && !(flags & 4) && (flags & 8)) tangents.emplace_back(MutatedInput{{flags}});
  }
  uint32_t place = 0;
  for (const OutputOrigin& origin : all_origins()) {
    for (const bool requires_grad : {false, true}) {
      meta.outputs.push_back({origin, contiguous_type(at::kFloat, {2}), requires_grad});
      const bool computed = std::holds_alternative<NewTensor>(origin);
      EXPECT_EQ(meta.outputs.back().is_computed(), computed);
      EXPECT_EQ(meta.outputs.back().takes_tangent(), computed && requires_grad);
      if (computed) roles.emplace_back(UserOutput{{place}});
      if (computed && requires_grad) tangents.emplace_back(UserOutput{{place}});
      ++place;
    }
  }
  EXPECT_EQ(meta.forward_outputs(), roles);
  EXPECT_EQ(meta.tangents(), tangents);
}

TEST(Metadata, TangentsAreTheDifferentiableForwardOutputsInTheirOrder) {
  ViewAndMutationMeta meta;
  meta.inputs = {input_of(2), input_of(2 | 8), input_of(0)};
  meta.outputs = {{NewTensor{}, {}, false}, {NewTensor{}, {}, true}, {IsInput{{1}}, {}, true}};
  std::vector<Differentiable> expected;
  for (const OutputRole& role : meta.forward_outputs()) {
    const auto differentiable = differentiable_of(role);
    ASSERT_TRUE(differentiable);
    const auto all = meta.tangents();
    if (std::find(all.begin(), all.end(), *differentiable) != all.end())
      expected.push_back(*differentiable);
  }
  EXPECT_EQ(meta.tangents(), expected);
  EXPECT_EQ(expected, (std::vector<Differentiable>{MutatedInput{{1}}, UserOutput{{1}}}));
}

TEST(Metadata, OnlyViewsOfInputsThatLostTheirGradientAreDetached) {
  for (const OutputOrigin& origin : all_origins()) {
    for (unsigned flags = 0; flags < kInputCombinations; ++flags) {
      for (const bool output_requires_grad : {false, true}) {
        ViewAndMutationMeta meta;
        meta.inputs = {input_of(flags)};
        meta.outputs = {{origin, contiguous_type(at::kFloat, {2}), output_requires_grad}};
        const bool expected =
            std::holds_alternative<ViewOfInput>(origin) && !output_requires_grad && (flags & 8);
        EXPECT_EQ(meta.needs_detach({0}), expected) << origin.index() << " " << flags;
      }
    }
  }
  EXPECT_THROW(ViewAndMutationMeta{}.needs_detach({0}), std::out_of_range);
}

TEST(Metadata, ViewsAreEqualButForTheNumbersOfTheirValues) {
  const auto view = [](std::vector<ViewStep> chain) { return ViewOfInput{{0}, std::move(chain)}; };
  EXPECT_EQ(view({transpose_step(0)}), view({transpose_step(7)}));
  EXPECT_FALSE(view({transpose_step(0)}) == view({transpose_step(0, 1)}));
  EXPECT_FALSE(view({transpose_step(0)}) == view({}));
  EXPECT_FALSE(view({}) == (ViewOfInput{{1}, {}}));
  const auto changed = [&](auto change) {
    ViewStep step = transpose_step(0);
    change(step);
    return view({step});
  };
  EXPECT_FALSE(view({transpose_step(0)}) == changed([](ViewStep& s) { s.result = 1; }));
  EXPECT_FALSE(view({transpose_step(0)}) == changed([](ViewStep& s) { s.element = 0; }));
  EXPECT_FALSE(view({transpose_step(0)}) == changed([](ViewStep& s) { s.self_argument = 1; }));
  EXPECT_FALSE(view({transpose_step(0)}) ==
               changed([](ViewStep& s) { s.op.op = find_operator("aten::select.int"); }));
}

TEST(Metadata, IsComparedAsAWhole) {
  ViewAndMutationMeta meta;
  meta.inputs = {input_of(3)};
  meta.outputs = {{ViewOfInput{{0}, {transpose_step(0)}}, contiguous_type(at::kFloat, {2}), true}};
  ViewAndMutationMeta other = meta;
  EXPECT_EQ(meta, other);
  other.inputs[0].version_advance = 1;
  EXPECT_FALSE(meta == other);
  other = meta;
  other.outputs[0].requires_grad = false;
  EXPECT_FALSE(meta == other);
}

TEST(Metadata, IsWrittenInWords) {
  ViewAndMutationMeta meta;
  meta.inputs = {input_of(0), input_of(1 | 2 | 8), input_of(31)};
  meta.inputs[1].version_advance = 2;
  meta.inputs[2].is_leaf = false;
  meta.inputs[2].storage_changed = true;
  meta.inputs[2].requires_grad_after = false;
  for (const OutputOrigin& origin : all_origins()) {
    meta.outputs.push_back(
        {origin, contiguous_type(at::kFloat, {2}), std::holds_alternative<NewTensor>(origin)});
  }
  meta.outputs.push_back({ViewOfInput{{1}, {}}, contiguous_type(at::kFloat, {2}), false});
  EXPECT_EQ(to_text(meta),
            R"(input 0: f32[2]{1}, unchanged
input 1: f32[2]{1}, requires grad, data mutated, version +2
input 2: f32[2]{1}, requires grad, not a leaf, data mutated, metadata mutated, storage changed, hidden from autograd, requires no grad after
output 0: f32[2]{1}, new tensor, requires grad
output 1: f32[2]{1}, is input 0
output 2: f32[2]{1}, same as output 0
output 3: f32[2]{1}, view of input 0 by aten::transpose.int(%0, dim0=0, dim1=1)
output 4: f32[2]{1}, view of the intermediate of output 0
output 5: undefined
output 6: f32[2]{1}, view of input 1 by as_strided
)");
}

}  // namespace
}  // namespace foregrad
