#include "ops/functional_variant.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include "ops/schema.h"

namespace foregrad {
namespace {

std::tuple<at::Tensor, at::Tensor> advance(const at::Tensor& x, at::Tensor state,
                                           at::TensorList more) {
  state.add_(1);
  for (const at::Tensor& one : more) one.mul_(2);
  return {x + state, state};
}

TORCH_LIBRARY(test_variant, library) {
  library.def("advance(Tensor x, Tensor(a!) state, Tensor(b!)[] more) -> (Tensor, Tensor(a!))",
              torch::dispatch(at::kCPU, &advance));
  library.def("count(Tensor(a!) x) -> ()");
  library.def("pure(Tensor x) -> Tensor");
  library.def("view(Tensor(a) x, Tensor(b!) y) -> Tensor(a)");
}

c10::OperatorHandle find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

TEST(FunctionalVariant, RunsOnCopies) {
  const FunctionalVariant& variant = functional_variant(find("test_variant::advance"));
  EXPECT_FALSE(is_mutating(variant.op));
  EXPECT_EQ(variant.written, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(variant.result_is, (std::vector<int64_t>{-1, 1}));
  const at::Tensor x = at::ones({2}), state = at::zeros({}), one = at::ones({3});
  torch::jit::Stack stack{x, state, at::TensorList({one})};
  variant.op.callBoxed(&stack);
  ASSERT_EQ(stack.size(), 3U);
  EXPECT_TRUE(at::equal(stack[0].toTensor(), at::full({2}, 2.0)));
  EXPECT_EQ(stack[1].toTensor().item<float>(), 1);
  EXPECT_TRUE(at::equal(stack[2].toTensorList().get(0), at::full({3}, 2.0)));
  EXPECT_EQ(state.item<float>(), 0);
  EXPECT_TRUE(at::equal(one, at::ones({3})));
  EXPECT_EQ(&functional_variant(find("test_variant::advance")), &variant);
}

TEST(FunctionalVariant, HasTheEffectThatWasDeclared) {
  const auto op = find("test_variant::count");
  declare_effect(op);
  EXPECT_TRUE(has_declared_effect(functional_variant(op).op));
}

TEST(FunctionalVariant, IsThereForOperatorsThatWrite) {
  EXPECT_TRUE(has_functional_variant(find("test_variant::advance")));
  EXPECT_FALSE(has_functional_variant(find("test_variant::pure")));
  EXPECT_FALSE(has_functional_variant(find("test_variant::view")));
  EXPECT_THROW(functional_variant(find("test_variant::view")), c10::Error);
}

}  // namespace
}  // namespace foregrad
