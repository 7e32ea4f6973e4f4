#include "runtime/backward_node.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/product_backward.h"

namespace foregrad {
namespace {

/// Multiplies the one tangent by the one saved value.
class Product final : public BackwardSource {
 public:
  const Backward& backward_for(const TangentLayout& layout) override {
    EXPECT_TRUE(layout.strides.size() == 1 && layout.strides[0]);
    return backward_;
  }
  const DifferentiableBackward& differentiable_for(const TangentLayout&,
                                                   const std::vector<bool>&) override {
    return differentiable_;
  }

 private:
  Backward backward_ = testing::product_backward();
  DifferentiableBackward differentiable_{.refusal = "no second derivative."};
};

TEST(BackwardNode, RunsTheBackwardAndCoercesTheTangent) {
  auto node = c10::make_intrusive<BackwardNode>(std::make_shared<Product>(), 1);
  node->save(at::full({2}, 3.0), false);
  node->add_next_edge({});
  auto grads = node->apply({at::ones({1}).expand({2})});
  EXPECT_TRUE(at::equal(grads.at(0), at::full({2}, 3.0)));
}

TEST(BackwardNode, UndefinedTangentsGiveUndefinedGradients) {
  auto node = c10::make_intrusive<BackwardNode>(std::make_shared<Product>(), 1);
  node->add_next_edge({});
  EXPECT_FALSE(node->apply({at::Tensor()}).at(0).defined());
}

TEST(BackwardNode, ARefusedSecondOrderIsAnErrorWhenItIsTaken) {
  auto node = c10::make_intrusive<BackwardNode>(std::make_shared<Product>(), 1);
  node->save(at::ones({2}), false);
  node->add_next_edge({});
  const at::AutoGradMode create_graph(true);
  const at::Tensor gradient = node->apply({at::ones({2})}).at(0);
  EXPECT_TRUE(at::equal(gradient, at::ones({2})));
  EXPECT_TRUE(gradient.requires_grad());
  EXPECT_THROW(gradient.sum().backward(), c10::Error);
}

TEST(BackwardNode, ASecondRunAfterReleaseIsAnError) {
  auto node = c10::make_intrusive<BackwardNode>(std::make_shared<Product>(), 1);
  node->save(at::ones({2}), false);
  node->add_next_edge({});
  node->will_release_variables();
  node->apply({at::ones({2})});
  EXPECT_THROW(node->apply({at::ones({2})}), c10::Error);
}

}  // namespace
}  // namespace foregrad
