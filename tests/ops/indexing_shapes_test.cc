#include "ops/indexing_shapes.h"

#include <gtest/gtest.h>

#include "support/expect_rules.h"

namespace foregrad {
namespace {

TEST(IndexingShapes, AgreeWithTheRealKernels) { testing::expect_rules_agree(indexing_rules()); }

}  // namespace
}  // namespace foregrad
