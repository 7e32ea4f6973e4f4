#include "cli/fuzz/instruction_drawer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foregrad::cli::fuzz {
namespace {

TEST(FuzzInstructionDrawer, DrawsWhatRuns) {
  Random random(1);
  InstructionDrawer drawer(random, {{at::rand({2, 3})}, {at::rand({2, 3})}});
  size_t drawn = 0;
  for (int i = 0; i < 50; ++i) drawn += drawer.draw({.view = 1, .compute = 1, .write = 1}) ? 1 : 0;
  EXPECT_GT(drawn, 40U);
  EXPECT_EQ(drawer.values().size(), 2 + drawn);
  const auto instructions = drawer.take();
  Values values{{at::rand({2, 3})}, {at::rand({2, 3})}};
  for (const Instruction& instruction : instructions) run(instruction, values);
  EXPECT_EQ(values.size(), 2 + drawn);
}

TEST(FuzzInstructionDrawer, DropsWhatThrows) {
  Random random(1);
  InstructionDrawer drawer(random, {{at::rand({2})}});
  EXPECT_FALSE(drawer.append(
      {.operation = &operation("x[0].matmul(x[1])"), .operands = {{.value = 0}, {.value = 3}}}));
  EXPECT_EQ(drawer.values().size(), 1U);
  EXPECT_TRUE(drawer.append({.operation = &operation("x[0].sin()"), .operands = {{.value = 0}}}));
  EXPECT_EQ(drawer.values().size(), 2U);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
