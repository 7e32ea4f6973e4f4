#include "foregrad/version.h"

#include <gtest/gtest.h>

#include <string>

namespace foregrad {
namespace {

// The build takes its version from the header; a library of another version must not say that it is
// this one.
TEST(Version, IsTheOneThatTheBuildDeclares) { EXPECT_EQ(version(), FOREGRAD_PROJECT_VERSION); }

}  // namespace
}  // namespace foregrad
