#include "cli/explain.h"

#include <gtest/gtest.h>

#include "cli/examples.h"
#include "command_run.h"
#include "temporary_folder.h"

namespace foregrad::cli {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_command;

TEST(ExplainTest, Lists) {
  const CommandRun run = run_command({"explain", "--list"});
  EXPECT_EQ(run.code, ExitCode::kOk);
  for (const Example& example : examples()) EXPECT_THAT(run.output, HasSubstr(example.name));
}

TEST(ExplainTest, PrintsForwardAndBackward) {
  const CommandRun run = run_command({"explain", "pointwise"});
  EXPECT_EQ(run.code, ExitCode::kOk) << run.errors;
  for (const char* section : {"== signature ==", "== forward graph ==", "== backward graph ==",
                              "== guards ==", "== compile stages ==", "saved for backward"})
    EXPECT_THAT(run.output, HasSubstr(section));
  EXPECT_THAT(run.output, Not(HasSubstr("joint graph")));
}

TEST(ExplainTest, PrintsOneGraph) {
  const std::vector<std::string> all{"forward", "backward", "joint"};
  for (const std::string& chosen : all) {
    const CommandRun run = run_command({"explain", "pointwise", "--graph", chosen.c_str()});
    for (const std::string& graph : all)
      EXPECT_EQ(run.output.find("== " + graph + " graph ==") != std::string::npos, graph == chosen)
          << run.output;
  }
}

TEST(ExplainTest, DrawsBothGraphs) {
  const testing::TemporaryFolder folder;
  const std::string out = (folder / "pictures").string();
  const CommandRun run = run_command({"explain", "view", "--out", out.c_str()});
  EXPECT_EQ(run.code, ExitCode::kOk) << run.errors;
  for (const char* name :
       {"view-forward.svg", "view-forward.png", "view-backward.svg", "view-backward.png"})
    EXPECT_TRUE(std::filesystem::exists(folder / "pictures" / name)) << name;
}

TEST(ExplainTest, BadUse) {
  for (const auto& arguments :
       {std::vector<const char*>{"explain"}, std::vector<const char*>{"explain", "nope"},
        std::vector<const char*>{"explain", "view", "--graph", "sideways"}}) {
    const CommandRun run = run_command(arguments);
    EXPECT_EQ(run.code, ExitCode::kUsage);
    EXPECT_THAT(run.errors, ::testing::StartsWith("foregrad: error: "));
  }
  EXPECT_THAT(run_command({"explain"}).errors,
              HasSubstr("expected the name of an example; `--list` shows them"));
}

TEST(ExplainTest, UnwritableFolder) {
  const testing::TemporaryFolder folder;
  testing::put(folder / "file", "");
  const std::string out = (folder / "file/below").string();
  const CommandRun run = run_command({"explain", "view", "--out", out.c_str()});
  EXPECT_EQ(run.code, ExitCode::kIo);
  EXPECT_THAT(run.errors, HasSubstr("cannot write `" + out));
}

}  // namespace
}  // namespace foregrad::cli
