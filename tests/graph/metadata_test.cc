#include "graph/metadata.h"

#include <gtest/gtest.h>

#include "support/graph_builder.h"

namespace foregrad {
namespace {

using testing::contiguous_type;
using testing::find_operator;

Effect transpose_again(uint32_t self, int64_t dim = 0) {
  return CallAgain{{.op = find_operator("aten::transpose.int"),
                    .args = {ValueId{self}, c10::IValue(dim), c10::IValue(1)},
                    .results = {ValueId{self + 1}},
                    .modes = {}}};
}

std::vector<OutputOrigin> all_origins() {
  return {NewTensor{},
          IsInput{{0}},
          SameAsOutput{{0}},
          ViewOfInput{{0}, {1}},
          ViewOfIntermediate{{0}, {1}},
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

TEST(Metadata, PreMutationValuesAreKeptForMutatedInputsThatRequiredGrad) {
  ViewAndMutationMeta meta;
  for (unsigned flags = 0; flags < kInputCombinations; ++flags)
    meta.inputs.push_back(input_of(flags));
  for (unsigned flags = 0; flags < kInputCombinations; ++flags) {
    EXPECT_EQ(meta.keeps_pre_mutation_value({flags}), (flags & 3) == 3) << flags;
  }
  EXPECT_THROW(meta.keeps_pre_mutation_value({kInputCombinations}), std::out_of_range);
}

TEST(Metadata, ForwardOutputsAreWrittenInputsThenBasesThenNewTensors) {
  ViewAndMutationMeta meta;
  std::vector<OutputRole> roles;
  for (unsigned flags = 0; flags < kInputCombinations; ++flags) {
    meta.inputs.push_back(input_of(flags));
    if (flags & 2) roles.emplace_back(MutatedInput{{flags}});
  }
  meta.inputs.push_back(input_of(2));
  meta.inputs.back().memory = InputIndex{0};  // the memory is written back, not what lies in it
  meta.inputs.push_back(input_of(2));
  meta.inputs.back().view_of = InputIndex{0};
  meta.bases.push_back({.value = {}, .slot = {}, .is_computed = true});
  meta.bases.push_back({.value = {}, .slot = {}, .is_computed = false});
  roles.emplace_back(IntermediateBase{{0}});
  uint32_t place = 0;
  for (const OutputOrigin& origin : all_origins()) {
    meta.outputs.push_back({.origin = origin, .type = contiguous_type(at::kFloat, {2})});
    const bool computed = std::holds_alternative<NewTensor>(origin);
    EXPECT_EQ(meta.outputs.back().is_computed(), computed);
    if (computed) roles.emplace_back(UserOutput{{place}});
    ++place;
  }
  EXPECT_EQ(meta.forward_outputs(), roles);
}

TEST(Metadata, TangentsAreWhatJoinsTheHistoryThenNewTensorsThatHaveOne) {
  ViewAndMutationMeta meta;
  meta.effects = {JoinHistory{{2}, IntermediateBase{{0}}}, AdvanceVersion{{0}, 1},
                  JoinHistory{{0}, MutatedInput{{0}}}};
  for (const bool requires_grad : {false, true}) {
    for (const bool is_leaf : {false, true}) {
      meta.outputs.push_back(
          {.origin = NewTensor{}, .type = {}, .requires_grad = requires_grad, .is_leaf = is_leaf});
    }
  }
  meta.outputs.push_back(
      {.origin = IsInput{{1}}, .type = {}, .requires_grad = true, .is_leaf = false});
  EXPECT_EQ(meta.tangents(), (std::vector<Differentiable>{IntermediateBase{{0}}, MutatedInput{{0}},
                                                          UserOutput{{2}}}));
}

TEST(Metadata, IsComparedAsAWhole) {
  ViewAndMutationMeta meta;
  meta.inputs = {input_of(3)};
  meta.outputs = {{ViewOfInput{{0}, {1}}, contiguous_type(at::kFloat, {2}), true}};
  meta.effects = {transpose_again(0)};
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
  meta.inputs.push_back(input_of(0));
  meta.inputs[3].view_of = InputIndex{1};
  meta.inputs[3].memory = InputIndex{2};
  meta.bases.push_back({.value = {}, .slot = {5}, .is_computed = true});
  meta.effects = {transpose_again(0), AdvanceVersion{{1}, 2}};
  EXPECT_EQ(to_text(meta),
            R"(input 0: f32[2]{1}, unchanged
input 1: f32[2]{1}, requires grad, data mutated, version +2
input 2: f32[2]{1}, requires grad, not a leaf, data mutated, metadata mutated, storage changed, hidden from autograd, requires no grad after
input 3: f32[2]{1}, view of input 1, in the memory of input 2
output 0: f32[2]{1}, new tensor, requires grad
output 1: f32[2]{1}, is input 0
output 2: f32[2]{1}, same as output 0
output 3: f32[2]{1}, shares the memory of input 0, made as %1
output 4: f32[2]{1}, shares the memory of base 0, made as %1
output 5: undefined
base 0: %5, computed
then %1 = aten::transpose.int(%0, dim0=0, dim1=1)
then %1: version +2
)");
}

}  // namespace
}  // namespace foregrad
