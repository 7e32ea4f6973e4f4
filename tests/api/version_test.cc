#include "foregrad/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace foregrad {
namespace {

TEST(Version, IsTheOneThatTheBuildDeclares) {
  std::ifstream file(FOREGRAD_SOURCE_DIR "/CMakeLists.txt");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(text,
              ::testing::HasSubstr("project(Foregrad VERSION " + std::string(version()) + " "));
}

}  // namespace
}  // namespace foregrad
