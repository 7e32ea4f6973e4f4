#include "capture/hooks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capture/recorder.h"
#include "graph/refusal.h"

namespace foregrad {
namespace {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

at::Tensor hooks_leaf() { return at::ones({2}).requires_grad_(); }

Recording record_hooks(const Function& run) {
  return record({.arguments = {hooks_leaf()}, .run = run, .on_capture = {}}).recording;
}

at::Tensor hooks_double(const at::Tensor& gradient) { return gradient * 2; }

TEST(Hooks, SayWhatTheyDoToADefinedGradientAndToNone) {
  const Recording recording = record_hooks([](const Tensors& in) -> Tensors {
    const at::Tensor y = in[0] * 3;
    y.register_hook(hooks_double);
    return {y * 5};
  });
  ASSERT_EQ(recording.hooks.size(), 1U);
  ASSERT_EQ(recording.ops.size(), 3U);  // mul, the hook, mul
  EXPECT_EQ(recording.ops[1].hook, 0U);
  EXPECT_FALSE(recording.ops[1].is_call);
  EXPECT_EQ(to_text(recording.ops[1]), "a hook on %1");
  const RecordedHook& hook = recording.hooks[0];
  EXPECT_TRUE(hook.is_on_last_history);
  EXPECT_FALSE(hook.is_on_first_history);
  ASSERT_EQ(hook.does->backwards.at(1).ops.size(), 1U);
  EXPECT_EQ(operator_text(hook.does->backwards.at(1).ops[0].op), "aten::mul.Scalar");
  EXPECT_TRUE(hook.does->backwards.at(0).error);  // of an undefined gradient there is no product
  EXPECT_TRUE(recording.hooked.contains(hook.value));
}

TEST(Hooks, AreOnTheHistoryThatTheirTensorHadThen) {
  const Recording recording = record_hooks([](const Tensors& in) -> Tensors {
    at::Tensor y = in[0] * 3;
    y.register_hook(hooks_double);
    y.mul_(in[0]);
    y.register_hook([](const at::Tensor&) { return at::Tensor(); });
    return {y};
  });
  ASSERT_EQ(recording.hooks.size(), 2U);
  EXPECT_FALSE(recording.hooks[0].is_on_last_history);
  EXPECT_TRUE(recording.hooks[1].is_on_last_history);
  EXPECT_EQ(recording.ops[1].hook, 0U);
  EXPECT_EQ(recording.ops.back().hook, 1U);
}

TEST(Hooks, AreLeftOutIfNoBackwardComesToThem) {
  int calls = 0;
  const Recording recording = record_hooks([&](const Tensors& in) -> Tensors {
    const at::Tensor y = in[0] * 3;
    y.register_hook([&](const at::Tensor& gradient) {
      ++calls;
      return gradient;
    });
    const unsigned place = y.register_hook(hooks_double);
    y.remove_hook(place);
    return {in[0] * 2};
  });
  EXPECT_TRUE(recording.hooks.empty());
  EXPECT_EQ(recording.ops.size(), 2U);
  EXPECT_EQ(calls, 0);
}

TEST(Hooks, OfALeafThatTheFunctionMakesOfItsTensorAreRefused) {
  EXPECT_THROW(record_hooks([](const Tensors& in) -> Tensors {
                 at::Tensor y = in[0] * 3;
                 y.register_hook(hooks_double);
                 const at::Tensor z = y * 2;
                 y.detach_();
                 y.requires_grad_();
                 return {y, z};
               }),
               Refusal);
}

}  // namespace
}  // namespace foregrad
