#include "capture/input_facts.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

TEST(InputFacts, ABaseThatIsNotGivenFollowsTheTensors) {
  const auto base = at::ones({4}).requires_grad_();
  const std::vector<at::Tensor> given{base.slice(0, 1, 3), at::zeros({2}), base.detach()};
  const InputSet inputs = gather_inputs(given);
  ASSERT_EQ(inputs.facts.size(), 4U);
  EXPECT_TRUE(inputs.tensors[3].is_same(base));
  EXPECT_EQ(inputs.facts[0].view_of, 3U);
  EXPECT_EQ(inputs.facts[2].view_of, std::nullopt);
  EXPECT_TRUE(inputs.facts[2].is_argument);
  EXPECT_FALSE(inputs.facts[3].is_argument);
  EXPECT_EQ(inputs.facts[0].storage, inputs.facts[3].storage);
  EXPECT_EQ(inputs.facts[0].storage, inputs.facts[2].storage);
  EXPECT_NE(inputs.facts[0].storage, inputs.facts[1].storage);
  EXPECT_EQ(inputs.facts[0].storage_bytes, 16);
  EXPECT_TRUE(inputs.facts[3].requires_grad && inputs.facts[3].is_leaf);
  EXPECT_FALSE(inputs.facts[0].is_leaf);
}

TEST(InputFacts, ABaseThatIsGivenIsItself) {
  const auto base = at::ones({4});
  const InputSet inputs = gather_inputs(std::vector{base.slice(0, 1, 3), base});
  ASSERT_EQ(inputs.facts.size(), 2U);
  EXPECT_EQ(inputs.facts[0].view_of, 1U);
}

}  // namespace
}  // namespace foregrad
