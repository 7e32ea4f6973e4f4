#include "cli/subprocess.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "expect_failure.h"
#include "temporary_folder.h"

namespace foregrad::cli {
namespace {

using testing::expect_failure;

TEST(SubprocessTest, FeedsInputAndReturnsOutput) {
  EXPECT_EQ(run_program({"cat"}, "hello", "coreutils"), "hello");
  EXPECT_EQ(run_program({"printf", "%s|", "a b", "$HOME; ls"}, "", "coreutils"), "a b|$HOME; ls|");
}

TEST(SubprocessTest, LargeInputAndOutputsDoNotBlock) {
  const std::string input(3'000'000, 'x');
  EXPECT_EQ(run_program({"sh", "-c", "cat; head -c 3000000 /dev/zero >&2"}, input, "dash"), input);
}

TEST(SubprocessTest, ChildThatReadsNothing) {
  EXPECT_EQ(run_program({"true"}, std::string(1'000'000, 'x'), "coreutils"), "");
}

TEST(SubprocessTest, MissingProgram) {
  for (const auto& action : {+[] { run_program({"foregrad-no-such"}, "", "some-package"); },
                             +[] { check_program_exists("foregrad-no-such", "some-package"); }})
    expect_failure(ExitCode::kIo, action, "`foregrad-no-such` is not on PATH",
                   "Install the package `some-package`");
  check_program_exists("cat", "coreutils");
}

TEST(SubprocessTest, ProgramThatFails) {
  expect_failure(
      ExitCode::kIo,
      [] {
        run_program({"sh", "-c", "echo bad thing >&2; exit 3"}, "", "dash");
      },
      "`sh` ended with code 3", "bad thing");
}

TEST(SubprocessTest, ProgramThatIsKilled) {
  expect_failure(
      ExitCode::kIo,
      [] {
        run_program({"sh", "-c", "kill -9 $$"}, "", "dash");
      },
      "`sh` was killed by signal 9");
}

TEST(SubprocessTest, ProgramThatCannotBeRun) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "script").string();
  testing::put(path, "#!/bin/sh\n");
  expect_failure(
      ExitCode::kIo, [&] { run_program({path}, "", "none"); },
      "cannot be started: Permission denied");
}

}  // namespace
}  // namespace foregrad::cli
