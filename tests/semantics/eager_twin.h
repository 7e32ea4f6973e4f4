// Runs a function eagerly and compiled from equal states and compares what a caller can see.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "foregrad/compile.h"
#include "support/as_eager.h"

namespace foregrad::testing {

/// Makes the arguments anew; called from equal generator states, so that both runs get equal ones.
using MakeState = std::function<Tensors()>;
/// Acts on arguments and results as a caller would, and returns more tensors to compare.
using TwinCaller = std::function<Tensors(const Tensors& arguments, const Tensors& results)>;

inline void expect_same(const at::Tensor& got, const at::Tensor& eager, const std::string& what) {
  ASSERT_EQ(got.defined(), eager.defined()) << what;
  if (!eager.defined()) return;
  EXPECT_EQ(got.scalar_type(), eager.scalar_type()) << what;
  EXPECT_EQ(got.sizes(), eager.sizes()) << what;
  EXPECT_EQ(got.strides(), eager.strides()) << what;
  EXPECT_EQ(got.requires_grad(), eager.requires_grad()) << what;
  EXPECT_EQ(got.is_leaf(), eager.is_leaf()) << what;
  EXPECT_TRUE(at::allclose(got.detach(), eager.detach(), 0, 0, true)) << what << "\n"
                                                                      << got << "\n"
                                                                      << eager;
}

/// Compares three calls of one compiled function with eager. Returns how many of them ran eagerly.
inline size_t expect_twin(const Program& program, const MakeState& make,
                          const TwinCaller& caller = {}) {
  const Scene scene{.make = [make]() -> Start { return {make()}; },
                    .caller =
                        [caller](const Called& called) {
                          if (!caller) return;
                          const Tensors more = caller(called.arguments, called.results);
                          for (size_t i = 0; i < more.size(); ++i)
                            called.seen.note_values("the caller's tensor " + std::to_string(i),
                                                    more[i]);
                        }};
  return expect_like_eager(program, {scene}).eager_calls;
}

}  // namespace foregrad::testing
