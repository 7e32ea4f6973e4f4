#include "ops/result_types.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

at::Tensor meta_tensor(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
  return at::empty(sizes, at::TensorOptions().device(at::kMeta).dtype(dtype));
}

TEST(ResultTypes, IteratedResultsLieAsTheInputs) {
  const auto a = meta_tensor({4, 3}).t();
  EXPECT_EQ(iterated_result({a, meta_tensor({1})}, at::kFloat).strides(), a.strides());
  EXPECT_EQ(iterated_result({a}, at::kFloat, at::kBool).scalar_type(), at::kBool);
  EXPECT_THROW(iterated_result({a, meta_tensor({2})}, at::kFloat), c10::Error);
}

TEST(ResultTypes, InputsOfAnotherDtypeAreCastFirst) {
  // Casting closes the gaps, and the kernel sees what was cast.
  const auto gaps = meta_tensor({3, 1, 8}, at::kLong).slice(2, 0, 4);
  EXPECT_EQ(iterated_result({gaps}, at::kFloat).strides(), gaps.to(at::kFloat).strides());
}

TEST(ResultTypes, DimensionsCountFromTheBackToo) {
  EXPECT_EQ(wrapped_dim(-1, 3), 2);
  EXPECT_EQ(wrapped_dim(3, 3), std::nullopt);
  EXPECT_EQ(wrapped_dim(-1, 0), 0);
}

TEST(ResultTypes, ParametersOfHalfPrecisionMayBeFloat) {
  const auto half = meta_tensor({2}, at::kHalf);
  EXPECT_EQ(parameter_dtype(half, {}), at::kHalf);
  EXPECT_EQ(parameter_dtype(half, {meta_tensor({2}), at::Tensor()}), at::kFloat);
  EXPECT_EQ(parameter_dtype(meta_tensor({2}), {half}), std::nullopt);
  EXPECT_EQ(parameter_dtype(half, {half, meta_tensor({2})}), std::nullopt);
}

}  // namespace
}  // namespace foregrad
