// Compiled modules against the modules themselves.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/optim/sgd.h>

#include "foregrad/compile.h"

namespace foregrad {
namespace {

using ::testing::HasSubstr;
namespace nn = torch::nn;

void expect_equal(const at::Tensor& left, const at::Tensor& right) {
  ASSERT_EQ(left.defined(), right.defined());
  if (left.defined()) {
    EXPECT_TRUE(at::equal(left, right)) << left << " and " << right;
  }
}

void expect_equal_parameters(const nn::Module& left, const nn::Module& right) {
  const auto ours = left.parameters();
  const auto theirs = right.parameters();
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    expect_equal(ours[i], theirs[i]);
    expect_equal(ours[i].grad(), theirs[i].grad());
  }
}

/// Two outputs, an argument with a default value, and a batch norm to tell the modes apart.
class BlockImpl final : public nn::Cloneable<BlockImpl> {
 public:
  BlockImpl() { reset(); }
  void reset() override {
    linear = register_module("linear", nn::Linear(4, 4));
    norm = register_module("norm", nn::BatchNorm1d(4));
  }
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x, double scale = 2) {
    const at::Tensor hidden = norm(linear(x)) * scale;
    return {hidden.pow(2).sum(), hidden};
  }
  nn::Linear linear = nullptr;
  nn::BatchNorm1d norm = nullptr;
};
TORCH_MODULE(Block);

std::shared_ptr<BlockImpl> copy_of(const Block& block) {
  return std::dynamic_pointer_cast<BlockImpl>(block->clone());
}

TEST(Module, AHolderIsCalledAsItsForward) {
  nn::Linear net(3, 2);
  auto compiled = compile(net, {.policy = Policy::Refuse});
  static_assert(std::is_same_v<decltype(compiled), CompiledModule<nn::LinearImpl>>);
  const auto x = at::randn({5, 3});
  const at::Tensor eager = net(x);
  const at::Tensor got = compiled(x);
  expect_equal(got, eager);
  eager.sum().backward();
  const at::Tensor expected = net->weight.grad().clone();
  net->zero_grad();
  got.sum().backward();
  expect_equal(net->weight.grad(), expected);
  EXPECT_EQ(compiled.report().eager_calls, 0u);
}

TEST(Module, ForwardKeepsItsResultTypeAndDefaultArguments) {
  const Block block;
  const auto eager = copy_of(block);
  auto compiled = compile(block.ptr(), {.policy = Policy::Refuse});
  const auto x = at::randn({8, 4});
  const auto [eager_loss, eager_hidden] = eager->forward(x);
  const auto [loss, hidden] = compiled(x);
  expect_equal(loss, eager_loss);
  expect_equal(hidden, eager_hidden);
  expect_equal(std::get<0>(compiled(x, 3.0)), std::get<0>(eager->forward(x, 3.0)));
}

TEST(Module, SequentialIsAModule) {
  nn::Sequential net(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 1));
  const auto compiled = compile(net, {.policy = Policy::Refuse});
  const auto x = at::randn({2, 4});
  const at::Tensor got = compiled(x);
  expect_equal(got, net->forward(x));
  EXPECT_EQ(compiled->size(), 3u);
}

TEST(Module, AModuleThatReturnsItsStateIsCompiled) {
  nn::GRU net(nn::GRUOptions(3, 4));
  const auto compiled = compile(net, {.policy = Policy::Refuse});
  const auto x = at::randn({5, 2, 3});
  const auto [eager_output, eager_state] = net(x);
  const auto [output, state] = compiled(x);
  expect_equal(output, eager_output);
  expect_equal(state, eager_state);
}

TEST(Module, TrainAndEvalChooseTheSpecialisation) {
  Block block;
  const auto eager = copy_of(block);
  const auto compiled = compile(block, {.policy = Policy::Refuse});
  for (const bool training : {true, false, true, false}) {
    compiled->train(training);
    eager->train(training);
    const auto x = at::randn({8, 4});
    expect_equal(std::get<1>(compiled(x)), std::get<1>(eager->forward(x)));
    expect_equal(compiled->norm->running_mean, eager->norm->running_mean);
  }
  EXPECT_EQ(compiled.report().specialisations.size(), 2u);
  EXPECT_THAT(compiled.report().recompiles.at(0), HasSubstr("in evaluation mode; was in training"));
}

TEST(Module, ToDoubleBetweenCallsCompilesAgain) {
  Block block;
  const auto eager = copy_of(block);
  const auto compiled = compile(block, {.policy = Policy::Refuse});
  compiled(at::randn({8, 4}));
  compiled->to(at::kDouble);
  eager->to(at::kDouble);
  const auto x = at::randn({8, 4}, at::kDouble);
  const auto [loss, hidden] = compiled(x);
  EXPECT_EQ(hidden.scalar_type(), at::kDouble);
  const auto [eager_loss, eager_hidden] = eager->forward(x);
  expect_equal(hidden, eager_hidden);
  loss.backward();
  eager_loss.backward();
  expect_equal_parameters(*compiled, *eager);
}

TEST(Module, ParametersAreTheModulesOwn) {
  Block block;
  const auto compiled = compile(block);
  EXPECT_EQ(compiled.module(), block.ptr());
  EXPECT_EQ(&*compiled, block.get());
  ASSERT_EQ(compiled->parameters().size(), 4u);
  compiled(at::randn({8, 4}));
  EXPECT_TRUE(compiled->parameters()[0].is_same(block->linear->weight));
  EXPECT_TRUE(compiled->linear->weight.is_leaf());
}

TEST(Module, OptimizerStepsBetweenCallsAreSeen) {
  Block block;
  const auto eager = copy_of(block);
  const auto compiled = compile(block, {.policy = Policy::Refuse});
  torch::optim::SGD ours(compiled->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  torch::optim::SGD theirs(eager->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  for (int i = 0; i < 5; ++i) {
    const auto x = at::randn({8, 4});
    ours.zero_grad();
    theirs.zero_grad();
    const auto loss = std::get<0>(compiled(x));
    const auto eager_loss = std::get<0>(eager->forward(x));
    expect_equal(loss, eager_loss);
    loss.backward();
    eager_loss.backward();
    ours.step();
    theirs.step();
    expect_equal_parameters(*compiled, *eager);
  }
  EXPECT_EQ(compiled.report().specialisations.size(), 1u);
}

TEST(Module, CopiesShareTheSpecialisations) {
  const std::vector copies(2, compile(nn::Linear(3, 2)));
  copies[0](at::ones({1, 3}));
  EXPECT_EQ(copies[1].report().specialisations.size(), 1u);
  EXPECT_EQ(copies[0].module(), copies[1].module());
  copies[1].invalidate();
  EXPECT_TRUE(copies[0].report().specialisations.empty());
}

TEST(Module, OtherModulesCanBeDeclaredBesideIt) {
  nn::Linear other(3, 3);
  class User final : public nn::Module {
   public:
    explicit User(nn::Linear other) : other_(std::move(other)) {}
    at::Tensor forward(const at::Tensor& x) { return other_(x); }

   private:
    nn::Linear other_;  // not registered: no parameter of this module
  };
  const auto user = std::make_shared<User>(other);
  const auto x = at::ones({1, 3});
  EXPECT_THROW(compile(user, {.policy = Policy::Refuse})(x), c10::Error);
  const auto compiled = compile(user, {.modules = {other}, .policy = Policy::Refuse});
  expect_equal(compiled(x), other(x));
}

TEST(Module, ACompiledModuleIsPartOfAFunctionCompiledAroundIt) {
  const auto net = compile(nn::Linear(3, 3));
  const auto outer = compile([net](const at::Tensor& x) { return net(x).sum(); },
                             {.modules = {net.module()}, .policy = Policy::Refuse});
  const auto x = at::ones({2, 3});
  expect_equal(outer(x), net->forward(x).sum());
  EXPECT_TRUE(net.report().specialisations.empty());
}

TEST(Module, AnEmptyOneIsRefused) {
  EXPECT_THROW(compile(nn::Linear(nullptr)), c10::Error);
  try {
    compile(std::shared_ptr<nn::LinearImpl>());
    FAIL() << "expected an error";
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("expected a module, got an empty"));
  }
}

}  // namespace
}  // namespace foregrad
