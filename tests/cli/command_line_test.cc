#include "cli/command_line.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <functional>
#include <new>
#include <stdexcept>
#include <system_error>

#include "command_run.h"

namespace foregrad::cli {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::run_command;
using ::testing::StartsWith;

TEST(CommandLineTest, Version) {
  const CommandRun run = run_command({"--version"});
  EXPECT_EQ(run.code, ExitCode::kOk);
  EXPECT_THAT(run.output, MatchesRegex("foregrad [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(CommandLineTest, HelpListsCommandsAndExitCodes) {
  const CommandRun run = run_command({"--help"});
  EXPECT_EQ(run.code, ExitCode::kOk);
  for (const char* text : {"train", "explain", "doctor", "Exit codes:", "130"})
    EXPECT_THAT(run.output, HasSubstr(text));
  for (const char* command : {"train", "explain", "doctor"}) {
    const CommandRun help = run_command({command, "--help"});
    EXPECT_EQ(help.code, ExitCode::kOk);
    EXPECT_THAT(help.output, HasSubstr("Exit codes:"));
    EXPECT_THAT(help.output, HasSubstr("Usage: foregrad " + std::string(command)));
  }
  EXPECT_THAT(run_command({"train", "--help"}).output, HasSubstr("Members of the JSON object"));
}

TEST(CommandLineTest, BadUse) {
  const CommandRun nothing = run_command({});
  EXPECT_EQ(nothing.code, ExitCode::kUsage);
  EXPECT_EQ(nothing.errors,
            "foregrad: error: A subcommand is required. See `foregrad --help` or `foregrad COMMAND "
            "--help`.\n");
  const CommandRun unknown = run_command({"fly"});
  EXPECT_EQ(unknown.code, ExitCode::kUsage);
  EXPECT_THAT(unknown.errors, StartsWith("foregrad: error: "));
  EXPECT_EQ(run_command({"doctor", "--nonsense"}).code, ExitCode::kUsage);
}

TEST(CommandLineTest, ExceptionsBecomeMessagesAndCodes) {
  const auto run = [](const std::function<void()>& thrower, ExitCode expected) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run_reporting_errors([&] {
                thrower();
                return ExitCode::kOk;
              }),
              expected);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(run([] {}, ExitCode::kOk), "");
  EXPECT_EQ(run([] { throw Failure(ExitCode::kData, "a"); }, ExitCode::kData),
            "foregrad: error: a\n");
  EXPECT_EQ(run([] { TORCH_CHECK(false, "b"); }, ExitCode::kInternal), "foregrad: error: b\n");
  EXPECT_EQ(run([] { throw std::bad_alloc(); }, ExitCode::kInternal),
            "foregrad: error: out of memory.\n");
  EXPECT_EQ(run([] { throw std::runtime_error("c"); }, ExitCode::kInternal),
            "foregrad: error: c\n");
  EXPECT_EQ(run([] { throw std::system_error(ENOSPC, std::generic_category()); }, ExitCode::kIo),
            "foregrad: error: cannot write to standard output: No space left on device.\n");
}

TEST(CommandLineTest, StandardOutputThatIsFull) {
  const int previous = dup(STDOUT_FILENO);
  std::fflush(stdout);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  dup2(full, STDOUT_FILENO);
  ::testing::internal::CaptureStderr();
  const char* arguments[] = {"foregrad", "doctor"};
  const ExitCode code = run_command_line(2, arguments);
  const std::string errors = ::testing::internal::GetCapturedStderr();
  std::clearerr(stdout);
  dup2(previous, STDOUT_FILENO);
  close(full);
  close(previous);
  EXPECT_EQ(code, ExitCode::kIo);
  EXPECT_EQ(errors, "foregrad: error: cannot write to standard output: No space left on device.\n");
}

}  // namespace
}  // namespace foregrad::cli
