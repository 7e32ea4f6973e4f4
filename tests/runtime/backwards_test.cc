#include "runtime/backwards.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/product_backward.h"

namespace foregrad {
namespace {

using testing::product_backward;

const TensorType& vector_type() {
  static const TensorType type = type_of(at::ones({2}));
  return type;
}

TEST(Backwards, MakeEachLayoutOnceAndKnowTheTracedOne) {
  int made = 0;
  Backwards backwards({vector_type()},
                      {.backward =
                           [&](const TangentLayout&) {
                             ++made;
                             return product_backward();
                           },
                       .differentiable = {}},
                      product_backward());
  backwards.backward_for({.strides = {c10::DimVector{1}}});
  EXPECT_EQ(made, 0);
  const Backward& expanded = backwards.backward_for({.strides = {c10::DimVector{0}}});
  EXPECT_EQ(&backwards.backward_for({.strides = {c10::DimVector{0}}}), &expanded);
  EXPECT_EQ(made, 1);
  backwards.backward_for({.strides = {c10::DimVector{1}}, .autocast = {.enabled = true}});
  EXPECT_EQ(made, 2);
}

TEST(Backwards, TakeTheTracedLayoutWhereAnotherNeedsMore) {
  Backwards backwards(
      {vector_type()},
      {.backward = [](const TangentLayout&) -> Backward { TORCH_CHECK(false, "not saved"); },
       .differentiable = {}},
      product_backward());
  EXPECT_EQ(&backwards.backward_for({.strides = {c10::DimVector{0}}}),
            &backwards.backward_for({.strides = {c10::DimVector{1}}}));
}

TEST(Backwards, KeepWhyGradientsCannotBeDifferentiated) {
  int tried = 0;
  Backwards backwards({vector_type()},
                      {.backward = {},
                       .differentiable = [&](const TangentLayout&,
                                             const std::vector<bool>&) -> DifferentiableBackward {
                         ++tried;
                         TORCH_CHECK(false, "no derivative");
                       }},
                      std::nullopt);
  for (int i = 0; i < 2; ++i) {
    const auto& found = backwards.differentiable_for({.strides = {c10::DimVector{1}}}, {true});
    EXPECT_NE(found.refusal.find("no derivative"), std::string::npos);
  }
  EXPECT_EQ(tried, 1);
}

}  // namespace
}  // namespace foregrad
