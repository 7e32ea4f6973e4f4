#include "ops/constant.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "ops/schema.h"

namespace foregrad {
namespace {

at::Tensor call(const ConstantCall& constant, std::optional<at::Device> device = std::nullopt) {
  torch::jit::Stack stack(constant.args.begin(), constant.args.end());
  stack.back() = device;
  constant.op.callBoxed(&stack);
  return stack.at(0).toTensor();
}

TEST(Constant, GivesTheElementsBack) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong,
                                    at::kByte, at::kBool, at::kComplexFloat, at::kComplexDouble}) {
    const at::Tensor x = at::randint(0, 100, {2, 3}).to(type);
    const at::Tensor got = call(constant_call(x));
    EXPECT_EQ(got.scalar_type(), type);
    EXPECT_TRUE(at::equal(got, x)) << type;
    EXPECT_TRUE(at::equal(call(constant_call(x.t())), x.t())) << type;
  }
}

TEST(Constant, IsExact) {
  const double kInfinity = std::numeric_limits<double>::infinity();
  const at::Tensor x = at::tensor({0.1, -0.0, kInfinity, 4.9e-324}, at::kDouble);
  const at::Tensor got = call(constant_call(x));
  EXPECT_TRUE(at::equal(got.view(at::kLong), x.view(at::kLong)));
  const at::Tensor n = at::tensor({std::numeric_limits<int64_t>::min(), (int64_t{1} << 62) + 1});
  EXPECT_TRUE(at::equal(call(constant_call(n)), n));
}

TEST(Constant, HasATypeWithoutElements) {
  const at::Tensor got = call(constant_call(at::ones({2, 3})), at::kMeta);
  EXPECT_TRUE(got.is_meta());
  EXPECT_EQ(got.sizes(), at::IntArrayRef({2, 3}));
}

TEST(Constant, IsPure) { EXPECT_TRUE(is_pure(constant_call(at::ones({1})).op)); }

}  // namespace
}  // namespace foregrad
