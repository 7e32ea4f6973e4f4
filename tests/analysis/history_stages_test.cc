#include "analysis/history_stages.h"

#include <gtest/gtest.h>

namespace foregrad {
namespace {

ViewAndMutationMeta with_new_outputs(size_t count) {
  ViewAndMutationMeta meta;
  for (size_t i = 0; i < count; ++i) {
    meta.outputs.push_back(
        {.origin = NewTensor{}, .type = {}, .requires_grad = true, .is_leaf = false});
  }
  return meta;
}

const Differentiable kFirst = UserOutput{{0}};
const Differentiable kSecond = UserOutput{{1}};
const Differentiable kThird = UserOutput{{2}};

TEST(HistoryStages, IndependentOutputsShareANode) {
  const auto stages = find_history_stages(with_new_outputs(2), {{}, {}});
  EXPECT_EQ(stages, (std::vector<HistoryStage>{{{kFirst, kSecond}, {}}}));
}

TEST(HistoryStages, AnOutputThatLeadsToAnotherComesAfterIt) {
  const auto stages = find_history_stages(with_new_outputs(3), {{kSecond}, {}, {kSecond}});
  EXPECT_EQ(stages, (std::vector<HistoryStage>{{{kSecond}, {}}, {{kFirst, kThird}, {kSecond}}}));
}

TEST(HistoryStages, AChainHasAsManyStages) {
  const auto stages = find_history_stages(with_new_outputs(3), {{}, {kFirst}, {kSecond}});
  EXPECT_EQ(stages, (std::vector<HistoryStage>{
                        {{kFirst}, {}}, {{kSecond}, {kFirst}}, {{kThird}, {kSecond}}}));
}

TEST(HistoryStages, AViewOfAWrittenInputLeadsToItsHistory) {
  ViewAndMutationMeta meta = with_new_outputs(2);
  meta.inputs.push_back({.requires_grad = true, .data_mutated = true});
  meta.outputs[0].origin = ViewOfInput{{0}, {1}};
  meta.effects.push_back(JoinHistory{{0}, MutatedInput{{0}}, 0});
  const auto stages = find_history_stages(meta, {{}, {kFirst}});
  EXPECT_EQ(stages, (std::vector<HistoryStage>{{{MutatedInput{{0}}}, {}}, {{kSecond}, {kFirst}}}));
}

}  // namespace
}  // namespace foregrad
