#include "ops/linear_algebra_shapes.h"

#include <gtest/gtest.h>

#include "support/expect_rules.h"

namespace foregrad {
namespace {

TEST(LinearAlgebraShapes, AgreeWithTheRealKernels) {
  testing::expect_rules_agree(linear_algebra_rules());
}

}  // namespace
}  // namespace foregrad
