#include "ops/random_shapes.h"

#include <gtest/gtest.h>

#include "support/expect_rules.h"

namespace foregrad {
namespace {

TEST(RandomShapes, AgreeWithTheRealKernels) { testing::expect_rules_agree(random_rules()); }

}  // namespace
}  // namespace foregrad
