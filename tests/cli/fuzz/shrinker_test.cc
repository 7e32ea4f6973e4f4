#include "cli/fuzz/shrinker.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/fuzz/generator.h"
#include "programs.h"

namespace foregrad::cli::fuzz {
namespace {

TEST(FuzzShrinker, LeavesOnlyWhatShowsTheDifference) {
  const Compiler compiler = testing::wrong_compiler(testing::clone_an_output);
  const Program program = testing::small_program();
  const auto difference = run_program(program, compiler).difference;
  ASSERT_TRUE(difference);
  const auto find = [&](const std::vector<Program>& programs) -> std::optional<size_t> {
    for (size_t i = 0; i < programs.size(); ++i) {
      if (shows(programs[i], difference->kind, compiler)) return i;
    }
    return std::nullopt;
  };
  const Program small = shrink(program, find);
  EXPECT_TRUE(shows(small, difference->kind, compiler));
  EXPECT_LE(small.body.instructions.size(), 1U);
  EXPECT_EQ(small.body.outputs.size(), 1U);
  EXPECT_EQ(small.calls, 1);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
