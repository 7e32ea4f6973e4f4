#include "capture/history_walk.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

namespace foregrad {
namespace {

TEST(HistoryWalk, VisitsEachNodesEdgesOnceAndStopsWhereItIsTold) {
  const at::Tensor x = at::ones({2}).requires_grad_();
  const at::Tensor middle = x.exp();
  const at::Tensor end = middle * middle;
  const auto root = torch::autograd::impl::gradient_edge(end);
  const auto cut = torch::autograd::impl::gradient_edge(middle);
  EXPECT_EQ(nodes_behind({root}).size(), 3U);
  int cuts = 0;
  walk_history(root, [&](const torch::autograd::Edge& edge) {
    EXPECT_EQ(edge, cut);
    ++cuts;
    return false;
  });
  EXPECT_EQ(cuts, 2);
}

TEST(HistoryWalk, AGradientEndsWhereItIsCaptured) {
  const at::Tensor x = at::ones({2}).requires_grad_();
  const at::Tensor middle = x * 3;
  const at::Tensor end = (middle * 2 + x * 5).sum();
  end_gradient_at(torch::autograd::impl::gradient_edge(middle));
  const auto grads = torch::autograd::grad({end}, {middle, x});
  EXPECT_TRUE(at::equal(grads[0], at::full({2}, 2.0)));
  EXPECT_TRUE(at::equal(grads[1], at::full({2}, 5.0)));
}

}  // namespace
}  // namespace foregrad
