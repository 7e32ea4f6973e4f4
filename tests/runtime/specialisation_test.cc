#include "runtime/specialisation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "graph/parser.h"
#include "runtime/backwards.h"
#include "support/product_backward.h"

namespace foregrad {
namespace {

TEST(Specialisation, RunsForwardAndMakesEachBackwardOnce) {
  ViewAndMutationMeta meta;
  const auto x = at::ones({2}).requires_grad_();
  meta.inputs.push_back({.type = type_of(x), .requires_grad = true});
  meta.outputs.push_back(
      {.origin = NewTensor{}, .type = type_of(x), .requires_grad = true, .is_leaf = false});
  int made = 0;
  BackwardMaker maker{.backward =
                          [&](const TangentLayout&) {
                            ++made;
                            return testing::product_backward();
                          },
                      .differentiable = {}};
  const Graph forward = parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::exp(%0)
  output %1 = output(0)
  output %1 = saved(%1)
})");
  Specialisation one(SpecialisationParts{
      .meta = meta,
      .forward = forward,
      .run_forward = through_aten(forward),
      .lifted = {},
      .nodes = {{.tangents = meta.tangents(),
                 .differentiated = {InputIndex{0}},
                 .saved = {0},
                 .backwards = std::make_shared<Backwards>(std::vector<TensorType>{type_of(x)},
                                                          std::move(maker), std::nullopt)}}});
  for (int i = 0; i < 2; ++i) {
    auto y = one.run(std::vector<const at::Tensor*>{&x}).at(0);
    EXPECT_TRUE(y.requires_grad());
    y.sum().backward();
  }
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(at::equal(x.grad(), 2 * x.detach().exp()));
}

}  // namespace
}  // namespace foregrad
