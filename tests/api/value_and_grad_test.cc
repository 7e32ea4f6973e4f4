#include "foregrad/value_and_grad.h"
#include "support/values.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace foregrad {
namespace {

using testing::random_leaf;
using Tensors = std::vector<at::Tensor>;

void expect_same(const Tensors& got, const Tensors& eager) {
  ASSERT_EQ(got.size(), eager.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), eager[i].defined()) << i;
    if (!got[i].defined()) continue;
    EXPECT_TRUE(at::equal(got[i], eager[i])) << i;
    EXPECT_FALSE(got[i].requires_grad()) << i;
  }
}

struct Net : torch::nn::Module {
  torch::nn::Linear first{register_module("first", torch::nn::Linear(3, 4))};
  torch::nn::Linear unused{register_module("unused", torch::nn::Linear(2, 2))};
  at::Tensor forward(const at::Tensor& x) { return at::tanh(first(x)).sum(1); }
};

TEST(ValueAndGrad, ArgumentsFirstThenParametersUndefinedWhereUnused) {
  auto net = std::make_shared<Net>();
  const auto loss = [net](const at::Tensor& x, const at::Tensor& y) {
    return std::tuple((net->forward(x) - y).pow(2).mean(), x * 2);
  };
  const auto fn = value_and_grad(loss, {.modules = {net}, .policy = Policy::Refuse});
  const at::Tensor x = random_leaf({5, 3});
  const at::Tensor y = at::randn({5});
  Tensors wanted = {x};
  for (const auto& parameter : net->parameters()) wanted.push_back(parameter);
  for (int call = 0; call < 2; ++call) {
    const auto [value, gradients] = fn(x, y);
    const auto eager = loss(x, y);
    EXPECT_TRUE(at::equal(std::get<0>(value), std::get<0>(eager)));
    EXPECT_TRUE(at::equal(std::get<1>(value), std::get<1>(eager)));
    EXPECT_FALSE(std::get<0>(value).requires_grad());
    expect_same(gradients,
                torch::autograd::grad({std::get<0>(eager)}, wanted, {}, std::nullopt, false, true));
    EXPECT_FALSE(gradients[3].defined());
  }
  EXPECT_FALSE(x.grad().defined());
}

TEST(ValueAndGrad, AnArgumentWithAHistoryAndOneThatIsAnothersView) {
  const auto loss = [](const at::Tensor& a, const at::Tensor& b) { return (a * b.exp()).sum(); };
  const auto fn = value_and_grad(loss);
  const at::Tensor x = random_leaf({4});
  const at::Tensor a = x * 2;
  const at::Tensor b = x.view({4});
  expect_same(fn(a, b).second, torch::autograd::grad({loss(a, b)}, {a, b}));
}

TEST(ValueAndGrad, HooksOfTheTensorsRun) {
  const auto loss = [](const at::Tensor& x) { return x.pow(2).sum(); };
  const at::Tensor x = random_leaf({3});
  x.register_hook([](const at::Tensor& g) { return g * 10; });
  expect_same(value_and_grad(loss)(x).second, torch::autograd::grad({loss(x)}, {x}));
}

TEST(ValueAndGrad, WorksWithoutGradModeAndOnceMore) {
  const auto loss = [](const at::Tensor& x) { return x.pow(2).sum(); };
  const auto fn = value_and_grad(loss);
  const at::Tensor x = random_leaf({3});
  const at::NoGradGuard no_grad;
  for (int i = 0; i < 3; ++i) expect_same(fn(x).second, {2 * x});
}

TEST(ValueAndGrad, SaysWhatTheLossMustBe) {
  const auto fn = value_and_grad([](const at::Tensor& x) { return x * 2; });
  EXPECT_THROW(fn(random_leaf({3})), c10::Error);
  EXPECT_THROW(fn(at::ones({1})), c10::Error);
}

TEST(ValueAndGrad, IsWarmedUp) {
  int runs = 0;
  const auto fn = value_and_grad([&runs](const at::Tensor& x) {
    ++runs;
    return x.pow(2).sum();
  });
  const at::Tensor x = random_leaf({3});
  EXPECT_TRUE(fn.warm_up(x));
  EXPECT_EQ(runs, 1);
  expect_same(fn(x).second, {2 * x.detach()});
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(fn.report().specialisations.size(), 1U);
}

}  // namespace
}  // namespace foregrad
