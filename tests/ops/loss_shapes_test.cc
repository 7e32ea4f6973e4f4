#include "ops/loss_shapes.h"

#include <gtest/gtest.h>

#include "support/expect_rules.h"

namespace foregrad {
namespace {

TEST(LossShapes, AgreeWithTheRealKernels) { testing::expect_rules_agree(loss_rules()); }

}  // namespace
}  // namespace foregrad
