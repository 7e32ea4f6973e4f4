#include "capture/reached_hooks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

namespace foregrad {
namespace {

torch::autograd::Edge edge_of_history(const at::Tensor& tensor) {
  return torch::autograd::impl::gradient_edge(tensor);
}

TEST(ReachedHooks, SayWhichRootLeadsToThem) {
  const at::Tensor y = at::ones({2}).requires_grad_() * 2;
  const at::Tensor between = y * 3;
  const at::Tensor seen = between * 4;
  const at::Tensor behind = seen * 5;
  const std::multimap<const torch::autograd::Node*, uint32_t> hooks{{y.grad_fn().get(), 7},
                                                                    {behind.grad_fn().get(), 8}};
  const auto reached = find_reached_hooks(
      hooks, {edge_of_history(between), edge_of_history(behind)}, {edge_of_history(seen)});
  EXPECT_EQ(reached, (std::vector<ReachedHook>{
                         {7, 0},             // from `between`
                         {8, 1},             // `behind` itself
                         {8, std::nullopt},  // which is on the very tensor
                     }));
  EXPECT_EQ(find_reached_hooks(hooks, {}, {edge_of_history(seen)}),
            (std::vector<ReachedHook>{{7, std::nullopt}}));
}

}  // namespace
}  // namespace foregrad
