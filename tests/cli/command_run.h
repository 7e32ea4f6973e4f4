// Runs the command line in this process and keeps what it prints.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace foregrad::cli::testing {

struct CommandRun {
  ExitCode code;
  std::string output;
  std::string errors;
};

inline CommandRun run_command(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "foregrad");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const ExitCode code = run_command_line(static_cast<int>(arguments.size()), arguments.data());
  return {code, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

}  // namespace foregrad::cli::testing
