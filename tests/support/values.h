// Makes tensors for a test, and holds tensors against numbers that it gives.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foregrad::testing {

/// The elements in order, as doubles, are the given ones; exactly so if the tolerance is zero.
inline void expect_values(const at::Tensor& tensor, const std::vector<double>& values,
                          double tolerance = 0) {
  ASSERT_TRUE(tensor.defined());
  ASSERT_EQ(tensor.numel(), static_cast<int64_t>(values.size()));
  const auto expected = at::tensor(values, at::kDouble);
  const auto got = tensor.detach().to(at::kDouble).flatten();
  EXPECT_TRUE(at::allclose(got, expected, 0, tolerance)) << got << "\nexpected\n" << expected;
}

/// A float tensor of the given numbers.
inline at::Tensor floats(const std::vector<float>& values) { return at::tensor(values); }

/// A leaf of random numbers.
inline at::Tensor random_leaf(at::IntArrayRef sizes) { return at::randn(sizes).requires_grad_(); }

}  // namespace foregrad::testing
