#include "api/derivatives.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "graph/parser.h"
#include "support/traced.h"

namespace foregrad::detail {
namespace {

constexpr std::string_view kBackward = R"(graph {
  input %0: f32[2]{1} = saved(%0)
  input %1: f32[2]{1} = saved(%1)
  input %2: f32[2]{1} = tangent(output(0))
  %3: f32[2]{1} = aten::mul.Tensor(%2, %1)
  %4: f32[2]{1} = aten::neg(%2)
  output %3 = grad(0)
  output undefined = grad(1)
  output %4 = grad(2)
})";

TEST(Derivatives, ABackwardTakesWhatItReadsAndGivesWhatIsAskedFor) {
  const Backward backward =
      make_backward(parse_graph(kBackward), {InputIndex{0}, InputIndex{1}}, {});
  EXPECT_EQ(backward.saved, std::vector<uint32_t>{1});
  EXPECT_EQ(backward.tangents.size(), 1U);
  const auto gradients = backward.run({at::full({2}, 3.0), at::full({2}, 2.0)});
  ASSERT_EQ(gradients.size(), 2U);
  EXPECT_TRUE(at::equal(gradients[0], at::full({2}, 6.0)));
  EXPECT_FALSE(gradients[1].defined());
}

TEST(Derivatives, KnowWhereGradientsLead) {
  const Graph joint = parse_graph(kBackward);
  EXPECT_EQ(differentiated_inputs(joint, false), (std::vector{InputIndex{0}, InputIndex{2}}));
  EXPECT_EQ(differentiated_inputs(joint, true).size(), 3U);
  EXPECT_EQ(tangent_types(joint).size(), 1U);
}

}  // namespace
}  // namespace foregrad::detail
