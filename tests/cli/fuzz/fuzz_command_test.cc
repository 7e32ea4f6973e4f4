#include "cli/fuzz/fuzz_command.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "../command_run.h"
#include "../temporary_folder.h"

namespace foregrad::cli {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using testing::run_command;

TEST(FuzzCommand, EndsWithTheCounts) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "counts.json").string();
  const CommandRun run = run_command(
      {"fuzz", "--seed", "1", "--programs", "30", "--max-failures", "0", "--json", path.c_str()});
  EXPECT_THAT(run.output, HasSubstr("\nprograms 30, as eager "));
  const auto json = nlohmann::json::parse(std::ifstream(path));
  EXPECT_EQ(json["programs"], 30);
  EXPECT_EQ(run.code, json["differ"] == 0 ? ExitCode::kOk : ExitCode::kMismatch) << run.errors;
}

TEST(FuzzCommand, PrintsAProgram) {
  const CommandRun run = run_command({"fuzz", "--seed", "1", "--print", "3"});
  EXPECT_EQ(run.code, ExitCode::kOk);
  EXPECT_THAT(run.output, HasSubstr("// Program 3 of seed 1."));
  EXPECT_THAT(run.output, HasSubstr("int main()"));
  const CommandRun small = run_command({"fuzz", "--seed", "1", "--print", "3", "--shrink"});
  EXPECT_EQ(small.code, ExitCode::kOk);
}

TEST(FuzzCommand, WantsALimit) {
  const CommandRun run = run_command({"fuzz"});
  EXPECT_EQ(run.code, ExitCode::kUsage);
  EXPECT_THAT(run.errors, HasSubstr("expected a limit: `--programs`, `--seconds` or both"));
}

}  // namespace
}  // namespace foregrad::cli
