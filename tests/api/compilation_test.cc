#include "api/compilation.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/describe.h"
#include "graph/refusal.h"

namespace foregrad::detail {
namespace {

class Bound final : public BoundFunction {
 public:
  explicit Bound(std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> fn)
      : fn_(std::move(fn)) {}
  TracedResult trace(const std::vector<at::Tensor>& tensors) override {
    return {.tensors = fn_(tensors), .prototype = nullptr};
  }

 private:
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> fn_;
};

const OnUndeclared kAllow = [](const at::Tensor&, const std::string&) {};

TEST(Compilation, IsValidForTheSameKindOfCallAndSaysWhyNot) {
  Bound fn(
      [](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> { return {in[0] + 1}; });
  const auto x = at::ones({2});
  const auto wide = at::ones({3});
  Leaves leaves;
  leaves(x);
  leaves(1.5);
  const auto made = compile_call(leaves, fn, {}, kAllow);
  EXPECT_TRUE(made->is_valid_for(leaves));
  Leaves other;
  other(wide);
  other(1.5);
  EXPECT_FALSE(made->is_valid_for(other));
  EXPECT_THAT(made->why_invalid(other), ::testing::HasSubstr("input 0 is f32[3]"));
  Leaves number;
  number(x);
  number(2.5);
  EXPECT_THAT(made->why_invalid(number), ::testing::HasSubstr("is 2.5; was 1.5"));
}

TEST(Compilation, AWriteToSharedStorageIsSeenThroughAllInputs) {
  Bound fn([](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
    in[0].add_(1);
    return {in[1] * 2};
  });
  const auto base = at::ones({4});
  const auto left = base.slice(0, 0, 3);
  const auto right = base.slice(0, 1, 4);
  Leaves leaves;
  leaves(left);
  leaves(right);
  const auto made = compile_call(leaves, fn, {}, kAllow);
  EXPECT_TRUE(at::equal(made->specialisation->run(leaves.tensors).at(0),
                        at::tensor({4., 4., 2.}, at::kFloat)));
  EXPECT_TRUE(at::equal(base, at::tensor({2., 2., 2., 1.}, at::kFloat)));
}

TEST(Compilation, ARepeatedArgumentDoesNotHideSharedStorage) {
  Bound fn([](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
    in[3].add_(in[0]);
    return {in[4] * 2};
  });
  const auto other = at::ones({3});
  const at::Tensor undefined;
  const auto base = at::ones({4});
  const auto left = base.slice(0, 0, 3);
  const auto right = base.slice(0, 1, 4);
  Leaves leaves;
  for (const auto* tensor : {&other, &other, &undefined, &left, &right}) leaves(*tensor);
  const auto made = compile_call(leaves, fn, {}, kAllow);
  EXPECT_TRUE(at::equal(made->specialisation->run(leaves.tensors).at(0),
                        at::tensor({4., 4., 2.}, at::kFloat)));
}

TEST(Compilation, TwoCompilationsOfOneFunctionAreTheSameText) {
  Bound fn([](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
    return {at::softmax(in[0] * in[0], 1), in[0].sum()};
  });
  const auto x = at::ones({2, 3}).requires_grad_();
  Leaves leaves;
  leaves(x);
  const auto first = compile_call(leaves, fn, {}, kAllow);
  const auto second = compile_call(leaves, fn, {}, kAllow);
  const auto one = describe(*first);
  const auto two = describe(*second);
  EXPECT_EQ(one.joint_graph, two.joint_graph);
  EXPECT_EQ(one.forward_graph, two.forward_graph);
  EXPECT_EQ(one.backward_graph, two.backward_graph);
}

}  // namespace
}  // namespace foregrad::detail
