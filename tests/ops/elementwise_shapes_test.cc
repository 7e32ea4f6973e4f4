#include "ops/elementwise_shapes.h"

#include <gtest/gtest.h>

#include "support/expect_rules.h"

namespace foregrad {
namespace {

TEST(ElementwiseShapes, AgreeWithTheRealKernels) {
  testing::expect_rules_agree(elementwise_rules());
}

}  // namespace
}  // namespace foregrad
