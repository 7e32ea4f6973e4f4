#include "cli/fuzz/edits.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/fuzz/interpreter.h"
#include "programs.h"

namespace foregrad::cli::fuzz {
namespace {

TEST(FuzzEdits, EachDiffers) {
  const Program program = testing::small_program();
  for (const Program& smaller : smaller_programs(program)) EXPECT_NE(smaller, program);
}

TEST(FuzzEdits, WhatUsedAnInstructionUsesItsOperand) {
  const Program program = testing::small_program();
  bool is_found = false;
  for (const Program& smaller : smaller_programs(program)) {
    if (smaller.body.instructions.size() != 3) continue;
    const Tensors outputs = run(smaller.body, {at::zeros({2, 3})});
    EXPECT_EQ(outputs.size(), 2U);
    // Without `select`, all elements are written.
    is_found = is_found || (outputs[1].numel() == 1 && outputs[1].item<float>() == -12);
  }
  EXPECT_TRUE(is_found);
}

TEST(FuzzEdits, CutsEachPart) {
  Program program = testing::small_program();
  program.backwards = {{.outputs = {0, 1}}};
  program.writes = {testing::instruction("x[0].zero_()", {{.value = 2}})};
  bool cuts_output = false;
  bool cuts_write = false;
  bool cuts_backward = false;
  for (const Program& smaller : smaller_programs(program)) {
    cuts_output = cuts_output || smaller.body.outputs.size() == 1;
    cuts_write = cuts_write || smaller.writes.empty();
    cuts_backward = cuts_backward || smaller.backwards.empty();
    if (smaller.body.outputs.size() == 1 && !smaller.writes.empty()) {
      EXPECT_EQ(smaller.writes[0].operands[0].value, 1U);
    }
  }
  EXPECT_TRUE(cuts_output && cuts_write && cuts_backward);
}

TEST(FuzzEdits, End) {
  Program program = testing::small_program();
  int steps = 0;
  for (auto smaller = smaller_programs(program); !smaller.empty() && steps < 200; ++steps) {
    program = smaller.back();
    smaller = smaller_programs(program);
  }
  EXPECT_LT(steps, 200);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
