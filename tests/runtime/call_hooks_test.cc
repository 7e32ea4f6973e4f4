#include "runtime/call_hooks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

/// `gradient * read`, of a gradient that is defined.
std::shared_ptr<const RecordedNode> multiplies() {
  static const auto mul = c10::Dispatcher::singleton().findSchemaOrThrow("aten::mul", "Tensor");
  auto does = std::make_shared<RecordedNode>();
  does->backwards[1] = {
      .value_count = 3,
      .ops = {{.op = mul, .args = {ValueId{1}, ValueId{0}}, .results = {ValueId{2}}, .modes = {}}},
      .gradients = {ValueId{2}},
      .error = {}};
  does->backwards[0].gradients = {std::nullopt};
  return does;
}

ViewAndMutationMeta meta_with_a_hook(VisibleHook hook) {
  ViewAndMutationMeta meta;
  meta.hooks.push_back(std::move(hook));
  return meta;
}

TEST(CallHooks, CallWhatWasRecordedOnWhatIsThere) {
  const ViewAndMutationMeta meta =
      meta_with_a_hook({.tensor = OutputIndex{0}, .does = multiplies(), .saved = {InputIndex{0}}});
  const at::Tensor x = at::full({2}, 3.0).requires_grad_();
  const std::vector<at::Tensor> inputs{x}, outputs{x * 2};
  CallHooks hooks(meta);
  hooks.register_first(inputs);
  hooks.finish(inputs, outputs);
  outputs[0].sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::full({2}, 6.0)));
}

TEST(CallHooks, ThoseOnAHistoryThatAnInputComesWithAreRegisteredFirst) {
  const ViewAndMutationMeta meta = meta_with_a_hook(
      {.tensor = InputIndex{0}, .is_first = true, .does = multiplies(), .saved = {InputIndex{0}}});
  const at::Tensor x = at::full({2}, 3.0).requires_grad_();
  const at::Tensor y = x * 2;
  const std::vector<at::Tensor> inputs{y};
  CallHooks hooks(meta);
  hooks.register_first(inputs);
  y.mul_(5);
  hooks.finish(inputs, {});
  y.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::full({2}, 5.0 * 30 * 2)));
}

TEST(CallHooks, TheirOwnTensorIsNotHeldAndGivesItsHistory) {
  const ViewAndMutationMeta meta =
      meta_with_a_hook({.tensor = OutputIndex{0}, .does = multiplies(), .saved = {OutputIndex{0}}});
  const at::Tensor x = at::full({2}, 3.0).requires_grad_();
  at::Tensor sum;
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> held = [&] {
    const at::Tensor y = x * 2;
    CallHooks hooks(meta);
    hooks.finish({}, std::vector<at::Tensor>{y});
    sum = y.sum();
    return c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>(y.getIntrusivePtr());
  }();
  EXPECT_TRUE(held.expired());
  sum.backward({}, /*retain_graph=*/true, /*create_graph=*/true);  // 2 * 2x
  EXPECT_TRUE(at::equal(x.grad().detach(), at::full({2}, 12.0)));
}

TEST(CallHooks, HaveTensorsRetainTheirGradients) {
  ViewAndMutationMeta meta;
  meta.outputs.push_back({.origin = NewTensor{}, .type = {}, .retains_grad = true});
  const std::vector<at::Tensor> outputs{at::ones({2}).requires_grad_() * 2};
  CallHooks(meta).finish({}, outputs);
  EXPECT_TRUE(outputs[0].retains_grad());
}

}  // namespace
}  // namespace foregrad
