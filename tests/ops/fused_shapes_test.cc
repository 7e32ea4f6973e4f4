#include "ops/fused_shapes.h"

#include <gtest/gtest.h>

#include "support/expect_rules.h"

namespace foregrad {
namespace {

TEST(FusedShapes, AgreeWithTheRealKernels) { testing::expect_rules_agree(fused_rules()); }

}  // namespace
}  // namespace foregrad
