#include "ops/declared_effects.h"

#include <gtest/gtest.h>

namespace foregrad {
namespace {

TEST(DeclaredEffects, AreByNameAndOverload) {
  EXPECT_FALSE(is_effect_declared({"test_effects::tell", "a"}));
  note_declared_effect({"test_effects::tell", "a"});
  EXPECT_TRUE(is_effect_declared({"test_effects::tell", "a"}));
  EXPECT_FALSE(is_effect_declared({"test_effects::tell", ""}));
}

}  // namespace
}  // namespace foregrad
