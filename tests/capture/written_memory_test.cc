#include "capture/written_memory.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/recorder.h"
#include "graph/refusal.h"

namespace foregrad {
namespace {

using Tensors = std::vector<at::Tensor>;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::string> operators_of(const std::function<Tensors(const Tensors&)>& run) {
  const auto result = record({.arguments = {at::ones({2})}, .run = run, .on_capture = {}});
  std::vector<std::string> names;
  for (const RecordedOp& op : result.recording.ops) names.push_back(operator_text(op.op));
  return names;
}

TEST(WrittenMemory, ThatIsFilledIsAConstant) {
  const auto names = operators_of([](const Tensors& in) -> Tensors {
    const at::Tensor scale = at::empty({2});
    scale.data_ptr<float>()[0] = 1;
    return {in[0] * scale};
  });
  EXPECT_THAT(names, ::testing::ElementsAre("foregrad::constant.float", "aten::mul.Tensor"));
}

TEST(WrittenMemory, ThatIsNotFilledStaysAsItIs) {
  const auto names = operators_of([](const Tensors& in) -> Tensors {
    return {at::empty({2}).copy_(in[0]), at::empty({3})};
  });
  EXPECT_THAT(names, ::testing::ElementsAre("aten::empty.memory_format", "aten::copy_",
                                            "aten::empty.memory_format"));
}

TEST(WrittenMemory, IsReturnedWithoutAnotherOperator) {
  const auto names = operators_of([](const Tensors&) -> Tensors {
    return {at::tensor(std::vector<int64_t>{1, 2})};
  });
  EXPECT_THAT(names, ::testing::ElementsAre("foregrad::constant.int"));
}

TEST(WrittenMemory, IsThereOnlyUntilAnOperatorTakesTheTensor) {
  operators_of([](const Tensors&) -> Tensors {
    const at::Tensor x = at::empty({2});
    x.fill_(3);
    EXPECT_THROW(x.data_ptr<float>(), c10::Error);
    return {x};
  });
}

TEST(WrittenMemory, IsNotWrittenLater) {
  const auto late = [] {
    operators_of([](const Tensors& in) -> Tensors {
      const at::Tensor x = at::empty({2});
      auto* data = x.data_ptr<float>();
      const at::Tensor y = in[0] + x;
      data[0] = 1;
      return {y};
    });
  };
  EXPECT_THAT(late, ThrowsMessage<Refusal>(HasSubstr("after an operator took it")));
}

TEST(WrittenMemory, IsTakenBackWhenTheFunctionThrows) {
  at::Tensor kept;
  const auto throws = [&](const Tensors&) -> Tensors {
    kept = at::empty({2});
    throw std::runtime_error("mine");
  };
  EXPECT_THROW(operators_of(throws), std::runtime_error);
  EXPECT_THROW(kept.data_ptr<float>(), c10::Error);
}

}  // namespace
}  // namespace foregrad
