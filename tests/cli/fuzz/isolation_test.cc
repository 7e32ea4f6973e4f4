#include "cli/fuzz/isolation.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "programs.h"

namespace foregrad::cli::fuzz {
namespace {

using ::testing::StartsWith;

/// Kills the process in functions of three outputs.
Tensors die(const Function& function, const Tensors& x) {
  Tensors outputs = function(x);
  if (outputs.size() == 3) raise(SIGKILL);
  return outputs;
}

TEST(FuzzIsolation, CountsAsOneProcessWould) {
  const SessionOptions options{.seed = 5, .first = 10, .programs = 700};
  const Compiler compiler = testing::wrong_compiler(testing::clone_an_output);
  const Tally isolated = run_isolated_session(options, compiler);
  const Tally alone = run_session(options, compiler);
  EXPECT_EQ(isolated.programs, 700U);
  EXPECT_EQ(isolated.as_eager, alone.as_eager);
  EXPECT_EQ(isolated.differ, alone.differ);
  ASSERT_EQ(isolated.differences.size(), alone.differences.size());
  for (const auto& [kind, group] : alone.differences) {
    EXPECT_EQ(isolated.differences.at(kind).count, group.count);
    EXPECT_EQ(isolated.differences.at(kind).programs, group.programs);
  }
}

TEST(FuzzIsolation, GoesOnAfterADeath) {
  const Tally tally =
      run_isolated_session({.seed = 5, .programs = 40}, testing::wrong_compiler(die));
  EXPECT_EQ(tally.programs, 40U);
  EXPECT_GT(tally.differ, 0U);
  EXPECT_GT(tally.as_eager, 20U);
  EXPECT_EQ(tally.programs, tally.as_eager + tally.differ);
  EXPECT_THAT(tally.differences.begin()->first, StartsWith("process died of signal 9"));
}

TEST(FuzzIsolation, FindsTheProgramThatKills) {
  Program killer = testing::small_program();
  killer.body.outputs.push_back({.value = 0});
  const Compiler compiler = testing::wrong_compiler(die);
  const auto difference = run_isolated(killer, compiler).difference;
  ASSERT_TRUE(difference);
  const std::vector<Program> programs{testing::small_program(), killer, testing::small_program()};
  EXPECT_EQ(find_isolated(programs, difference->kind, compiler), 1U);
  EXPECT_EQ(find_isolated(programs, "something else", compiler), std::nullopt);
  EXPECT_FALSE(run_isolated(programs[0], compiler).difference);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
