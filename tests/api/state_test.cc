#include "foregrad/state.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "foregrad/compile.h"

namespace foregrad {
namespace {

TEST(State, IsReadAnewAtEachCallWithoutCompilingAgain) {
  const State<double> beta(0.5);
  const auto fn = [beta](const at::Tensor& x) { return (x * beta).exp().sum(); };
  auto compiled = compile(fn, {.policy = Policy::Refuse});
  for (const double value : {0.5, 0.25, 2.0, -1.0}) {
    beta = value;
    EXPECT_EQ(beta.value(), value);
    const at::Tensor x = at::randn({3}).requires_grad_();
    const at::Tensor y = compiled(x);
    EXPECT_EQ(y.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(y, fn(x)));
    EXPECT_TRUE(
        at::equal(torch::autograd::grad({y}, {x})[0], torch::autograd::grad({fn(x)}, {x})[0]));
  }
  EXPECT_EQ(compiled.report().specialisations.size(), 1U);
  EXPECT_TRUE(compiled.report().recompiles.empty());
}

TEST(State, HasTheDtypeOfItsNumber) {
  EXPECT_EQ(State<float>(1).tensor().scalar_type(), at::kFloat);
  EXPECT_EQ(State<int64_t>(3).value(), 3);
  EXPECT_EQ(State<bool>(true).tensor().scalar_type(), at::kBool);
}

TEST(State, ATensorThatIsNoStateIsNotDeclared) {
  const at::Tensor captured = at::ones({});
  EXPECT_FALSE(detail::is_state(captured));
  auto compiled =
      compile([captured](const at::Tensor& x) { return x * captured; }, {.policy = Policy::Refuse});
  EXPECT_THROW(compiled(at::ones({2})), c10::Error);
}

TEST(State, IsForgottenWithItsLastCopy) {
  at::Tensor held;
  {
    const State<double> state(1);
    held = state.tensor();
    EXPECT_TRUE(detail::is_state(held));
  }
  EXPECT_FALSE(detail::is_state(held));
}

}  // namespace
}  // namespace foregrad
