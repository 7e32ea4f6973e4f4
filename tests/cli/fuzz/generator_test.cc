#include "cli/fuzz/generator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "programs.h"

namespace foregrad::cli::fuzz {
namespace {

TEST(FuzzGenerator, SeedAndNumberTellTheProgram) {
  for (uint64_t number = 0; number < 50; ++number) {
    const Program program = draw_program(1, number);
    draw_program(1, number + 1);
    EXPECT_EQ(draw_program(1, number), program);
    EXPECT_NE(draw_program(2, number), program);
  }
}

TEST(FuzzGenerator, DrawsAllThatIsAskedFor) {
  size_t no_grad = 0;
  size_t writes = 0;
  size_t autocast = 0;
  size_t backwards = 0;
  size_t twice = 0;
  size_t metadata = 0;
  for (uint64_t number = 0; number < 500; ++number) {
    const Program program = draw_program(1, number);
    for (const Instruction& instruction : program.body.instructions) {
      no_grad += instruction.modes.recording == Recording::Off ? 1 : 0;
      autocast += instruction.modes.autocast == Autocast::On ? 1 : 0;
      writes += instruction.operation->category == Category::Write ? 1 : 0;
      metadata += instruction.operation->category == Category::Metadata ? 1 : 0;
    }
    backwards += program.backwards.size();
    const auto& outputs = program.body.outputs;
    twice += outputs.size() > 1 && outputs[0] == outputs[1] ? 1 : 0;
  }
  for (const size_t count : {no_grad, autocast, writes, backwards, twice, metadata})
    EXPECT_GT(count, 5U);
}

TEST(FuzzGenerator, MostProgramsRun) {
  int threw = 0;
  for (uint64_t number = 0; number < 500; ++number) {
    threw += run_program(draw_program(1, number), testing::compile_to_eager).eager_threw ? 1 : 0;
  }
  EXPECT_LT(threw, 60);
  EXPECT_GT(threw, 0);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
