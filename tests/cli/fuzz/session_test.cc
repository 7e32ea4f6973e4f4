#include "cli/fuzz/session.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "programs.h"

namespace foregrad::cli::fuzz {
namespace {

TEST(FuzzSession, StopsAtWhicheverLimitIsFirst) {
  EXPECT_EQ(run_session({.programs = 7}, testing::compile_to_eager).programs, 7U);
  EXPECT_EQ(run_session({.programs = 7, .seconds = 0.0}, testing::compile_to_eager).programs, 0U);
  const Tally timed =
      run_session({.programs = std::nullopt, .seconds = 0.2}, testing::compile_to_eager);
  EXPECT_GE(timed.seconds, 0.2);
  EXPECT_GT(timed.programs, 0U);
}

TEST(FuzzSession, CountsEachProgramOnce) {
  const Tally tally =
      run_session({.seed = 3, .programs = 200}, testing::wrong_compiler(testing::clone_an_output));
  EXPECT_GT(tally.differ, 0U);
  EXPECT_GT(tally.as_eager, 0U);
  EXPECT_EQ(tally.refused, 0U);
  EXPECT_EQ(tally.programs, tally.as_eager + tally.refused + tally.differ);
  uint64_t of_kinds = 0;
  for (const auto& [kind, group] : tally.differences) of_kinds += group.count;
  EXPECT_EQ(of_kinds, tally.differ);
}

TEST(FuzzSession, CallsBetweenPrograms) {
  EXPECT_THROW(run_session({.programs = 9}, testing::compile_to_eager,
                           [](const Tally& tally) {
                             if (tally.programs == 4) throw std::runtime_error("enough");
                           }),
               std::runtime_error);
}

TEST(FuzzSession, LikeReasonsAreOne) {
  EXPECT_EQ(without_details("input 12: `f32[2]` with 3 gaps\nmore"), "input N: `…` with N gaps");
  EXPECT_LE(without_details(std::string(500, 'x')).size(), 120U);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
