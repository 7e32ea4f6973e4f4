#include <gtest/gtest.h>

#include "graph/parser.h"
#include "graph/verifier.h"
#include "partition/partition.h"

namespace foregrad {
namespace {

std::vector<uint32_t> saved_of(std::string_view text) {
  const Graph joint = parse_graph(text);
  verify(joint, "joint");
  std::vector<uint32_t> ids;
  for (const ValueId value : choose_saved_values(joint)) ids.push_back(value.index);
  return ids;
}

using Ids = std::vector<uint32_t>;

TEST(ChooseSavedValues, TakesWhatBackwardReads) {
  EXPECT_EQ(saved_of(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = lifted(1)
  input %2: f32[2]{1} = tangent(output(0))
  %3: f32[2]{1} = aten::exp(%0)
  %4: f32[2]{1} = aten::sin(%3)
  %5: f32[2]{1} = aten::mul.Tensor(%4, %1)
  backward %6: f32[2]{1} = aten::mul.Tensor(%2, %1)
  backward %7: f32[2]{1} = aten::mul.Tensor(%6, %3)
  output %5 = output(0)
  output %7 = grad(0)
})"),
            (Ids{1, 3}));
}

TEST(ChooseSavedValues, TakesBasesOfViews) {
  // A chain of views of a value, a list, an undeclared view, one that may copy, views of primals.
  EXPECT_EQ(saved_of(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  input %1: f32[2,2]{2,1} = user(1)
  input %2: f32[2]{1} = tangent(output(0))
  %3: f32[2,2]{2,1} = aten::exp(%0)
  %4: f32[2,2]{1,2} = aten::t(%3)
  [%5: f32[2]{2}, %6: f32[2]{2}+1] = aten::unbind.int(%4)
  %7: f32[2,2]{2,1} = aten::neg(%1)
  %8: f32[4]{1} = aten::_unsafe_view(%7, size=[4])
  %9: f32[2,2]{1,2} = aten::t(%1)
  %10: f32[4]{1} = aten::reshape(%9, shape=[4])
  backward %11: f32[2]{1} = aten::mul.Tensor(%2, %6)
  backward %12: f32[4]{1} = aten::mul.Tensor(%8, %10)
  output %5 = output(0)
  output %11 = grad(0)
  output %12 = grad(1)
})"),
            (Ids{1, 3, 7}));
}

TEST(ChooseSavedValues, TakesNothingForTangents) {
  EXPECT_EQ(saved_of(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = tangent(output(0))
  %2: f32[2]{1} = aten::neg(%0)
  backward %3: f32[2]{1} = aten::alias(%1)
  backward %4: f32[2]{1} = aten::neg(%3)
  output %2 = output(0)
  output %4 = grad(0)
  output %1 = grad(1)
  output undefined = grad(2)
})"),
            Ids{});
}

TEST(ChooseSavedValues, TakesGradientsThatAreForwardValues) {
  EXPECT_EQ(saved_of(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  input %1: f32[2,2]{2,1} = user(1)
  %2: f32[2,2]{2,1} = aten::neg(%0)
  %3: f32[2,2]{1,2} = aten::t(%2)
  %4: f32[2,2]{2,1} = aten::exp(%0)
  output %4 = output(0)
  output %3 = grad(0)
  output %1 = grad(1)
})"),
            (Ids{1, 2}));
}

TEST(ChooseSavedValues, TakesRandomAndUninitialisedValues) {
  EXPECT_EQ(saved_of(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1}, %2: bool[2]{1} = aten::native_dropout(%0, p=0.5, train=true)
  %3: f32[2]{1} = aten::empty_like(%0)
  backward %4: f32[2]{1} = aten::mul.Tensor(%3, %2)
  output %1 = output(0)
  output %4 = grad(0)
})"),
            (Ids{2, 3}));
}

TEST(ChooseSavedValues, VisitsEachViewOnce) {
  // Each view reads its predecessor twice: a walk that forgets where it was takes 2^60 steps.
  std::string text = "graph {\n  input %0: f32[2]{1} = user(0)\n";
  for (int i = 0; i < 60; ++i) {
    const std::string id = std::to_string(i);
    text +=
        "  %" + std::to_string(i + 1) + ": f32[2]{1} = aten::expand_as(%" + id + ", %" + id + ")\n";
  }
  text += "  backward %61: f32[2]{1} = aten::neg(%60)\n  output %61 = grad(0)\n}";
  EXPECT_EQ(saved_of(text), Ids{0});
}

}  // namespace
}  // namespace foregrad
