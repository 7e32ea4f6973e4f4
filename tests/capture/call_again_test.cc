#include "capture/call_again.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

TEST(CallAgain, RunsUnderTheModesOfTheRecordingAndFoldsHistories) {
  const auto sin = c10::Dispatcher::singleton().findSchemaOrThrow("aten::sin", "");
  RecordedOp op{.op = sin, .args = {ValueId{0}}, .results = {ValueId{1}}, .modes = {}};
  std::vector<at::Tensor> values{at::ones({2}).requires_grad_(), {}};
  uint64_t expected = 0;
  fold_history(expected, values[0]);
  EXPECT_EQ(call_again(op, values), expected);
  EXPECT_TRUE(values[1].requires_grad());
  op.modes.grad_mode = false;
  call_again(op, values);
  EXPECT_FALSE(values[1].requires_grad());
  EXPECT_TRUE(at::GradMode::is_enabled());
}

}  // namespace
}  // namespace foregrad
