#include "cli/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

#include "expect_failure.h"

namespace foregrad::cli {
namespace {

class InterruptTest : public ::testing::TestWithParam<int> {};

TEST_P(InterruptTest, FirstSignalIsNoted) {
  const InterruptGuard guard;
  guard.check();
  std::raise(GetParam());
  testing::expect_failure(
      ExitCode::kInterrupted, [&] { guard.check(); }, "interrupted; nothing was written");
}

TEST_P(InterruptTest, SecondSignalEndsTheProcess) {
  const InterruptGuard guard;
  EXPECT_EXIT(
      {
        std::raise(GetParam());
        std::raise(GetParam());
      },
      ::testing::KilledBySignal(GetParam()), "");
}

TEST_P(InterruptTest, NextGuardBeginsAnewAndHandlersComeBack) {
  {
    const InterruptGuard guard;
    std::raise(GetParam());
  }
  InterruptGuard().check();
  struct sigaction action {};
  sigaction(GetParam(), nullptr, &action);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}

INSTANTIATE_TEST_SUITE_P(Signals, InterruptTest, ::testing::Values(SIGINT, SIGTERM));

}  // namespace
}  // namespace foregrad::cli
