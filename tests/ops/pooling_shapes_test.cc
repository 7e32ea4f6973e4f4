#include "ops/pooling_shapes.h"

#include <gtest/gtest.h>

#include "support/expect_rules.h"

namespace foregrad {
namespace {

TEST(PoolingShapes, AgreeWithTheRealKernels) { testing::expect_rules_agree(pooling_rules()); }

}  // namespace
}  // namespace foregrad
