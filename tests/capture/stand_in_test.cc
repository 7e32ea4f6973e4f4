#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capture/stand_in.h"

namespace foregrad {
namespace {

TEST(StandIn, HasTheFlagsOfTheTensorItStandsFor) {
  Tracer tracer(Tracer::Keep::Nodes);
  const TensorType type = type_of(at::ones({2}));
  const auto leaf = make_stand_in(tracer, type, UserInput{InputIndex{0}}, true, true);
  const auto interior = make_stand_in(tracer, type, UserInput{InputIndex{1}}, true, false);
  const auto plain = make_stand_in(tracer, type, UserInput{InputIndex{2}}, false, true);
  EXPECT_TRUE(leaf.requires_grad() && leaf.is_leaf());
  EXPECT_TRUE(interior.requires_grad() && !interior.is_leaf());
  EXPECT_FALSE(plain.requires_grad());
  EXPECT_EQ(traced_value(interior), ValueId{1});
  EXPECT_EQ(traced_value(at::Tensor()), std::nullopt);
}

}  // namespace
}  // namespace foregrad
