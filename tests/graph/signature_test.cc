#include "graph/signature.h"

#include <gtest/gtest.h>

namespace foregrad {
namespace {

TEST(Signature, WritesInputRoles) {
  EXPECT_EQ(to_text(InputRole(UserInput{{3}})), "user(3)");
  EXPECT_EQ(to_text(InputRole(Lifted{{4}})), "lifted(4)");
  EXPECT_EQ(to_text(InputRole(ViewBase{{0}})), "view_base(0)");
  EXPECT_EQ(to_text(InputRole(Saved{{7}})), "saved(%7)");
  EXPECT_EQ(to_text(InputRole(LateInput{{6}})), "late(6)");
  EXPECT_EQ(to_text(InputRole(Tangent{UserOutput{{1}}})), "tangent(output(1))");
  EXPECT_EQ(to_text(InputRole(Tangent{MutatedInput{{2}}})), "tangent(mutated(2))");
  EXPECT_EQ(to_text(InputRole(Tangent{IntermediateBase{{5}}})), "tangent(intermediate_base(5))");
}

TEST(Signature, WritesOutputRoles) {
  EXPECT_EQ(to_text(OutputRole(UserOutput{{0}})), "output(0)");
  EXPECT_EQ(to_text(OutputRole(MutatedInput{{1}})), "mutated(1)");
  EXPECT_EQ(to_text(OutputRole(IntermediateBase{{2}})), "intermediate_base(2)");
  EXPECT_EQ(to_text(OutputRole(Grad{{3}})), "grad(3)");
  EXPECT_EQ(to_text(OutputRole(LateWrite{{3}})), "late_write(3)");
  EXPECT_EQ(to_text(OutputRole(TangentWrite{UserOutput{{1}}})), "tangent_write(output(1))");
  EXPECT_EQ(to_text(OutputRole(Saved{{4}})), "saved(%4)");
  EXPECT_EQ(to_text(Differentiable(MutatedInput{{1}})), "mutated(1)");
}

TEST(Signature, PrimalsAreUserLiftedAndBase) {
  EXPECT_EQ(primal_of(UserInput{{3}}), InputIndex{3});
  EXPECT_EQ(primal_of(Lifted{{4}}), InputIndex{4});
  EXPECT_EQ(primal_of(ViewBase{{5}}), InputIndex{5});
  EXPECT_EQ(primal_of(Tangent{UserOutput{{0}}}), std::nullopt);
  EXPECT_EQ(primal_of(Saved{{0}}), std::nullopt);
}

TEST(Signature, TellsWhatIsBackwards) {
  EXPECT_TRUE(belongs_to_backward(InputRole(LateInput{{0}})));
  EXPECT_TRUE(belongs_to_backward(InputRole(Tangent{UserOutput{{0}}})));
  EXPECT_FALSE(belongs_to_backward(InputRole(UserInput{{0}})));
  EXPECT_TRUE(belongs_to_backward(OutputRole(LateWrite{{0}})));
  EXPECT_TRUE(belongs_to_backward(OutputRole(Grad{{0}})));
  EXPECT_FALSE(belongs_to_backward(OutputRole(Saved{{0}})));
}

TEST(Signature, GradientsAndSavedValuesTakeNoTangent) {
  EXPECT_EQ(differentiable_of(UserOutput{{1}}), Differentiable(UserOutput{{1}}));
  EXPECT_EQ(differentiable_of(MutatedInput{{2}}), Differentiable(MutatedInput{{2}}));
  EXPECT_EQ(differentiable_of(IntermediateBase{{3}}), Differentiable(IntermediateBase{{3}}));
  EXPECT_EQ(differentiable_of(Grad{{1}}), std::nullopt);
  EXPECT_EQ(differentiable_of(Saved{{1}}), std::nullopt);
}

}  // namespace
}  // namespace foregrad
