#include "ops/reduction_shapes.h"

#include <gtest/gtest.h>

#include "support/expect_rules.h"

namespace foregrad {
namespace {

TEST(ReductionShapes, AgreeWithTheRealKernels) { testing::expect_rules_agree(reduction_rules()); }

}  // namespace
}  // namespace foregrad
