#include "ops/normalization_shapes.h"

#include <gtest/gtest.h>

#include "support/expect_rules.h"

namespace foregrad {
namespace {

TEST(NormalizationShapes, AgreeWithTheRealKernels) {
  testing::expect_rules_agree(normalization_rules());
}

}  // namespace
}  // namespace foregrad
