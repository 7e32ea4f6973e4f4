// Checks on how a command ends.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/failure.h"

namespace foregrad::cli::testing {

/// Calls `action` and expects a `Failure` of this code whose message holds each of the given parts.
template <typename Action, typename... Parts>
void expect_failure(ExitCode code, const Action& action, const Parts&... parts) {
  try {
    action();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), code) << failure.what();
    const std::string message = failure.what();
    for (const std::string& part : std::vector<std::string>{parts...})
      EXPECT_THAT(message, ::testing::HasSubstr(part));
    return;
  }
  ADD_FAILURE() << "expected a failure";
}

}  // namespace foregrad::cli::testing
