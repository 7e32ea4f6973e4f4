// Compares what a shape rule infers with what the real kernel gives.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

namespace foregrad::testing {

/// The tensors agree in all but data and device.
inline void expect_like(const at::Tensor& inferred, const at::Tensor& real) {
  ASSERT_EQ(inferred.defined(), real.defined());
  if (!real.defined()) return;
  EXPECT_EQ(inferred.sizes(), real.sizes());
  EXPECT_EQ(inferred.strides(), real.strides());
  EXPECT_EQ(inferred.dtype(), real.dtype());
}

}  // namespace foregrad::testing
