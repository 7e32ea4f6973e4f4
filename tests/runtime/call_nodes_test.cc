#include "runtime/call_nodes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

namespace foregrad {
namespace {

class CallNodesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    meta_.inputs.push_back({.type = type_of(x_), .requires_grad = true});
    for (size_t i = 0; i < outputs_.size(); ++i) {
      meta_.outputs.push_back(
          {.origin = NewTensor{}, .type = type_of(x_), .requires_grad = true, .is_leaf = false});
    }
  }

  const at::Tensor x_ = at::ones({2}).requires_grad_();
  const std::vector<at::Tensor> slots_ = {x_};
  const std::vector<at::Tensor> outputs_ = {at::ones({2}), at::ones({2})};
  ViewAndMutationMeta meta_;
};

TEST_F(CallNodesTest, ResultsOfOnePartShareANode) {
  const std::vector<NodeParts> parts = {
      {.tangents = {UserOutput{{0}}, UserOutput{{1}}}, .differentiated = {InputIndex{0}}}};
  CallNodes nodes(meta_, parts, slots_, outputs_);
  nodes.finish();
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(outputs_[i].output_nr(), 0);
    EXPECT_EQ(outputs_[i].grad_fn()->next_edge(0), torch::autograd::Edge(nodes.node(0), i));
    EXPECT_TRUE(nodes.node(0)->is_history_of(outputs_[i]));
  }
  EXPECT_FALSE(nodes.node(0)->is_history_of(x_));
  EXPECT_EQ(nodes.node(0)->next_edge(0), torch::autograd::impl::gradient_edge(x_));
}

TEST_F(CallNodesTest, ANodeLeadsToTheResultThatItsOwnIsComputedFrom) {
  const std::vector<NodeParts> parts = {
      {.tangents = {UserOutput{{1}}}, .cuts = {UserOutput{{0}}}, .differentiated = {InputIndex{1}}},
      {.tangents = {UserOutput{{0}}}, .differentiated = {InputIndex{0}}}};
  CallNodes nodes(meta_, parts, slots_, outputs_);
  nodes.finish();
  EXPECT_EQ(outputs_[1].grad_fn(), nodes.node(0));
  EXPECT_EQ(outputs_[0].grad_fn(), nodes.node(1));
  EXPECT_EQ(nodes.node(0)->next_edge(0), torch::autograd::impl::gradient_edge(outputs_[0]));
}

TEST_F(CallNodesTest, NothingDifferentiableHasNoNode) {
  const std::vector<NodeParts> parts(1);
  CallNodes nodes(meta_, parts, slots_, outputs_);
  nodes.finish();
  EXPECT_FALSE(nodes.node(0));
}

}  // namespace
}  // namespace foregrad
