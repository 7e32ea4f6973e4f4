#include "cli/fuzz/child.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace foregrad::cli::fuzz {
namespace {

using ::testing::StartsWith;

TEST(FuzzChild, ReturnsWhatTheActionReturned) {
  const std::string long_text(1 << 20, 'x');
  EXPECT_EQ(run_in_child([&] { return long_text; }).text, long_text);
}

TEST(FuzzChild, TellsHowItDied) {
  const ChildEnd end = run_in_child([]() -> std::string {
    signal(SIGKILL, SIG_DFL);
    raise(SIGKILL);
    return "";
  });
  EXPECT_FALSE(end.text);
  EXPECT_THAT(end.death, StartsWith("signal 9"));
  EXPECT_EQ(run_in_child([]() -> std::string { throw std::runtime_error("no"); }).death,
            "exit code 1");
}

TEST(FuzzChild, ChangesNothingHere) {
  int number = 1;
  run_in_child([&] { return std::to_string(number = 2); });
  EXPECT_EQ(number, 1);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
