#include "cli/fuzz/comparison.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace foregrad::cli::fuzz {
namespace {

using ::testing::StartsWith;

std::string kind_of(const at::Tensor& eager, const at::Tensor& compiled,
                    bool are_gradients = false) {
  const auto difference =
      first_difference({{.role = "it", .tensors = {eager}, .are_gradients = are_gradients}},
                       {{.role = "it", .tensors = {compiled}, .are_gradients = are_gradients}});
  return difference ? difference->kind : "none";
}

TEST(FuzzComparison, FindsEachFact) {
  const at::Tensor x = at::ones({2, 2});
  EXPECT_EQ(kind_of(x, at::ones({2, 2})), "none");
  EXPECT_EQ(kind_of(x, {}), "presence of it");
  EXPECT_EQ(kind_of(x, x.to(at::kDouble)), "type of it");
  EXPECT_EQ(kind_of(x, at::ones({4})), "sizes of it");
  EXPECT_EQ(kind_of(x, at::ones({2, 2}).t()), "strides of it");
  EXPECT_EQ(kind_of(x, at::zeros({2, 2})), "elements of it");
  EXPECT_EQ(kind_of(x, at::ones({2, 2}).requires_grad_()), "requires_grad of it");
  EXPECT_EQ(kind_of(x, at::ones({3, 2}).slice(0, 1)), "storage offset of it");
  EXPECT_EQ(kind_of(x, at::ones({3, 2}).slice(0, 0, 2)), "is_view of it");
  EXPECT_EQ(kind_of(x, at::ones({2, 2}).mul_(1)), "version of it");
}

TEST(FuzzComparison, FindsAliasing) {
  const at::Tensor x = at::ones({2});
  const auto seen = [](const Tensors& tensors) {
    return std::vector<Seen>{{.role = "it", .tensors = tensors}};
  };
  const at::Tensor y = x.detach();
  const auto one = first_difference(seen({x, x}), seen({x, y}));
  ASSERT_TRUE(one);
  EXPECT_THAT(one->kind, StartsWith("identity"));
  const auto shared = first_difference(seen({x, y}), seen({x, at::ones({2})}));
  ASSERT_TRUE(shared);
}

TEST(FuzzComparison, ElementsAreBitsButNanIsNan) {
  const at::Tensor nan = at::full({1}, std::nan(""));
  EXPECT_TRUE(has_same_elements(nan, -nan));
  EXPECT_FALSE(has_same_elements(at::zeros({1}), -at::zeros({1})));
  EXPECT_FALSE(has_same_elements(nan, at::zeros({1})));
  const at::Tensor wide = at::rand({3, 2});
  EXPECT_TRUE(has_same_elements(wide.t(), wide.t().contiguous()));
}

TEST(FuzzComparison, ElementsOfComplexNumbersOfHalves) {
  const at::Tensor x = at::ones({2}).to(at::kComplexHalf);
  EXPECT_TRUE(has_same_elements(x, x.clone()));
  EXPECT_TRUE(has_same_elements(x.conj(), x.clone().conj()));
  EXPECT_FALSE(has_same_elements(x, at::zeros({2}).to(at::kComplexHalf)));
}

TEST(FuzzComparison, StridesOfGradientsAreNotCompared) {
  EXPECT_EQ(kind_of(at::ones({2, 2}), at::ones({2, 2}).t(), true), "none");
}

TEST(FuzzComparison, GradientsMayDifferInTheLastPlaces) {
  const at::Tensor x = at::full({2}, 1.0);
  EXPECT_EQ(kind_of(x, x + 1e-7, true), "none");
  EXPECT_EQ(kind_of(x, x + 1e-5, true), "elements of it");
}

TEST(FuzzComparison, ResultsMayDifferInTheLastTwoBits) {
  const at::Tensor x = at::full({2}, 1.0, at::kFloat);
  EXPECT_EQ(kind_of(x.clone(), x.nextafter(2 * x).clone(), false), "none");
  EXPECT_EQ(kind_of(x.clone(), (x + 1e-6).clone(), false), "elements of it");
  EXPECT_EQ(kind_of(at::zeros({1}).clone(), at::zeros({1}).neg().clone(), false), "elements of it");
  const at::Tensor whole = at::ones({1}, at::kLong);
  EXPECT_EQ(kind_of(whole.clone(), whole.add(1).clone(), false), "elements of it");
}

}  // namespace
}  // namespace foregrad::cli::fuzz
