#include "analysis/value_numbers.h"

#include <gtest/gtest.h>

#include "graph/parser.h"

namespace foregrad {
namespace {

TEST(ValueNumbers, EqualPureNodesOfEqualValuesAreEqual) {
  const auto first = first_equals(parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = user(1)
  %2: f32[2]{1} = aten::exp(%0)
  %3: f32[2]{1} = aten::exp(%0)
  %4: f32[2]{1} = aten::mul.Tensor(%2, %1)
  %5: f32[2]{1} = aten::mul.Tensor(%3, %1)
  %6: f32[2]{1} = aten::mul.Tensor(%3, %0)
  %7: f32[2]{1} = aten::exp(%1)
  [%8: f32[1]{1}, %9: f32[1]{1}+1] = aten::split.Tensor(%2, split_size=1)
  [%10: f32[1]{1}, %11: f32[1]{1}+1] = aten::split.Tensor(%3, split_size=1)
})"));
  const std::vector<uint32_t> expected = {0, 1, 2, 2, 4, 4, 6, 7, 8, 9, 8, 9};
  for (uint32_t i = 0; i < expected.size(); ++i) EXPECT_EQ(first[i].index, expected[i]) << i;
}

TEST(ValueNumbers, RandomAndUninitialisedValuesAreTheirOwn) {
  const auto first = first_equals(parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::bernoulli(%0)
  %2: f32[2]{1} = aten::bernoulli(%0)
  %3: f32[2]{1} = aten::empty_like(%0)
  %4: f32[2]{1} = aten::empty_like(%0)
})"));
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(first[i].index, i);
}

}  // namespace
}  // namespace foregrad
