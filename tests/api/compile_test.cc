// Compiled functions against eager: what a caller can see.
#include "foregrad/compile.h"
#include "support/values.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <thread>

namespace foregrad {
namespace {

using ::testing::HasSubstr;
using testing::random_leaf;

void expect_identical(const at::Tensor& left, const at::Tensor& right) {
  ASSERT_EQ(left.defined(), right.defined());
  if (!left.defined()) return;
  EXPECT_EQ(left.dtype(), right.dtype());
  EXPECT_EQ(left.sizes(), right.sizes());
  EXPECT_EQ(left.strides(), right.strides());
  EXPECT_EQ(left.requires_grad(), right.requires_grad());
  EXPECT_TRUE(at::allclose(left.detach(), right.detach(), 0, 0, /*equal_nan=*/true));
}

TEST(Compile, OutputsAndGradientsAreEagers) {
  auto fn = [](const at::Tensor& x, const at::Tensor& y) -> at::Tensor {
    return (at::sin(x) * y + at::sigmoid(x - y)).sum();
  };
  auto compiled = compile(fn);
  for (int i = 0; i < 3; ++i) {
    auto x = random_leaf({4, 5});
    auto y = random_leaf({5});
    auto x2 = x.detach().clone().requires_grad_();
    auto y2 = y.detach().clone().requires_grad_();
    auto eager = fn(x, y);
    auto got = compiled(x2, y2);
    expect_identical(got, eager);
    eager.backward();
    got.backward();
    expect_identical(x2.grad(), x.grad());
    expect_identical(y2.grad(), y.grad());
  }
  EXPECT_EQ(compiled.report().specialisations.size(), 1u);
  EXPECT_EQ(compiled.report().eager_calls, 0u);
}

TEST(Compile, OneOfTwoOutputsLeavesTheOtherTangentUndefined) {
  auto fn = [](const at::Tensor& a, const at::Tensor& b) -> std::tuple<at::Tensor, at::Tensor> {
    return {at::sin(a), at::log(b)};
  };
  auto compiled = compile(fn);
  auto a = random_leaf({3});
  auto b = at::zeros({3}).requires_grad_();
  auto [first, second] = compiled(a, b);
  first.sum().backward();
  EXPECT_TRUE(a.grad().defined());
  EXPECT_FALSE(b.grad().defined());
}

TEST(Compile, LossAndLogitsShareOneForward) {
  torch::nn::Linear net(4, 3);
  auto fn = [&](const at::Tensor& x) -> std::tuple<at::Tensor, at::Tensor> {
    auto logits = net(x);
    return {logits.exp().sum(), logits};
  };
  auto compiled = compile(fn, {.modules = {net}});
  auto x = at::randn({2, 4});
  auto [eager_loss, eager_logits] = fn(x);
  eager_loss.backward();
  auto expected = net->weight.grad().clone();
  net->zero_grad();
  auto [loss, logits] = compiled(x);
  expect_identical(loss, eager_loss);
  expect_identical(logits, eager_logits);
  loss.backward();
  expect_identical(net->weight.grad(), expected);
}

TEST(Compile, TrainModeBatchNormUpdatesItsBuffersAsEager) {
  torch::nn::BatchNorm2d eager(3);
  torch::nn::BatchNorm2d net(3);
  auto compiled =
      compile([&](const at::Tensor& x) -> at::Tensor { return net(x); }, {.modules = {net}});
  for (int i = 0; i < 3; ++i) {
    auto x = at::randn({2, 3, 4, 4});
    auto x1 = x.clone().requires_grad_();
    auto x2 = x.clone().requires_grad_();
    auto y1 = eager(x1);
    auto y2 = compiled(x2);
    expect_identical(y2, y1);
    y1.pow(2).sum().backward();
    y2.pow(2).sum().backward();
    expect_identical(x2.grad(), x1.grad());
    expect_identical(net->weight.grad(), eager->weight.grad());
    expect_identical(net->running_mean, eager->running_mean);
    expect_identical(net->running_var, eager->running_var);
    expect_identical(net->num_batches_tracked, eager->num_batches_tracked);
    EXPECT_EQ(net->running_mean._version(), eager->running_mean._version());
    EXPECT_EQ(net->num_batches_tracked._version(), eager->num_batches_tracked._version());
  }
  net->eval();
  eager->eval();
  auto x = at::randn({2, 3, 4, 4});
  expect_identical(compiled(x), eager(x));
  EXPECT_EQ(compiled.report().eager_calls, 0u);
  EXPECT_THAT(compiled.report().recompiles.back(),
              HasSubstr("is in evaluation mode; was in training"));
}

TEST(Compile, DropoutDrawsEagersNumbers) {
  auto fn = [](const at::Tensor& x) -> at::Tensor {
    return at::dropout(x, 0.5, true) * at::rand_like(x);
  };
  auto compiled = compile(fn);
  auto x = at::ones({64});
  at::manual_seed(3);
  auto eager = fn(x);
  auto after_eager = at::rand({1});
  at::manual_seed(3);
  auto got = compiled(x);
  auto after = at::rand({1});
  expect_identical(got, eager);
  expect_identical(after, after_eager);
}

TEST(Compile, WritesToAnInputThatRequiresGradAreTracked) {
  auto fn = [](at::Tensor x) -> at::Tensor {
    x.mul_(3);
    return x.exp();
  };
  auto compiled = compile(fn);
  auto w1 = random_leaf({3});
  auto w2 = w1.detach().clone().requires_grad_();
  auto x1 = w1 * 2;
  auto x2 = w2 * 2;
  auto y1 = fn(x1);
  auto y2 = compiled(x2);
  expect_identical(y2, y1);
  expect_identical(x2, x1);
  EXPECT_EQ(x2._version(), x1._version());
  (y1.sum() + x1.sum()).backward();
  (y2.sum() + x2.sum()).backward();
  expect_identical(w2.grad(), w1.grad());
  EXPECT_EQ(compiled.report().eager_calls, 0u);
}

TEST(Compile, OutputsThatAliasInputsAreTheCallersTensorsAndViews) {
  auto compiled = compile([](const at::Tensor& x) -> std::vector<at::Tensor> {
    return {x, x.view({6}).slice(0, 1, 4), x.detach()};
  });
  auto x = random_leaf({2, 3});
  auto outputs = compiled(x);
  EXPECT_TRUE(outputs[0].is_same(x));
  EXPECT_TRUE(outputs[1].is_alias_of(x));
  EXPECT_EQ(outputs[1].grad_fn()->name(), "SliceBackward0");
  EXPECT_TRUE(outputs[2].is_alias_of(x));
  EXPECT_FALSE(outputs[2].requires_grad());
  outputs[1].sum().backward();
  EXPECT_EQ(x.grad().sum().item<float>(), 3);
}

struct Motion {
  at::Tensor position;
  std::optional<at::Tensor> velocity;
  double step = 0;
  auto members() { return std::tie(position, velocity, step); }
};

TEST(Compile, StructsOptionalsMapsAndNumbersGoInAndOut) {
  auto fn = [](const Motion& s, double dt,
               const std::map<std::string, at::Tensor>& more) -> Motion {
    return {.position = s.position + dt * more.at("force"),
            .velocity = std::nullopt,
            .step = s.step + dt};
  };
  auto compiled = compile(fn);
  const Motion in{.position = random_leaf({2}), .velocity = at::ones({2}), .step = 1};
  const std::map<std::string, at::Tensor> more{{"force", at::ones({2})}};
  auto eager = fn(in, 0.5, more);
  auto got = compiled(in, 0.5, more);
  expect_identical(got.position, eager.position);
  EXPECT_EQ(got.step, 1.5);
  EXPECT_FALSE(got.velocity);
  expect_identical(compiled(in, 0.25, more).position, fn(in, 0.25, more).position);
  EXPECT_THAT(compiled.report().recompiles.at(0), HasSubstr("0.25; was 0.5"));
}

TEST(Compile, FunctionsWithoutResultsWrite) {
  auto total = at::zeros({3});
  auto compiled = compile([&](const at::Tensor& x) { total.add_(x); }, {.tensors = {total}});
  const auto version = total._version();
  compiled(at::ones({3}));
  compiled(at::ones({3}));
  EXPECT_TRUE(at::equal(total, at::full({3}, 2.0)));
  EXPECT_EQ(total._version(), version + 2);
}

TEST(Compile, GuardsChooseTheSpecialisation) {
  auto compiled =
      compile([](const at::Tensor& x, const at::Tensor& y) -> at::Tensor { return x * y + x; });
  auto x = random_leaf({3});
  compiled(x, x).sum().backward();
  EXPECT_TRUE(at::allclose(x.grad(), 2 * x.detach() + 1));
  compiled(random_leaf({3}), random_leaf({3}));
  compiled(at::ones({3}), random_leaf({3}));
  {
    at::NoGradGuard no_grad;
    EXPECT_FALSE(compiled(random_leaf({3}), random_leaf({3})).requires_grad());
  }
  compiled(random_leaf({2, 3}), random_leaf({3}));
  compiled(random_leaf({3}).to(at::kDouble), random_leaf({3}));
  EXPECT_EQ(compiled.report().specialisations.size(), 6u);
  EXPECT_EQ(compiled.report().recompiles.size(), 5u);
}

TEST(Compile, TheLeastRecentlyUsedSpecialisationGoesFirst) {
  auto compiled =
      compile([](const at::Tensor& x) -> at::Tensor { return x + 1; }, {.max_specialisations = 2});
  for (int64_t n : {1, 2, 1, 3, 1}) compiled(at::ones({n}));
  EXPECT_EQ(compiled.report().specialisations.size(), 2u);
  EXPECT_EQ(compiled.report().recompiles.size(), 2u);
  compiled.invalidate();
  EXPECT_TRUE(compiled.report().specialisations.empty());
}

TEST(Compile, AnArgumentThatIsAlsoCapturedIsThatTensorOnly) {
  auto w = at::full({2}, 3.0);
  auto compiled =
      compile([&](const at::Tensor& x) -> at::Tensor { return x * w; }, {.tensors = {w}});
  EXPECT_EQ(compiled(w)[0].item<float>(), 9);
  EXPECT_EQ(compiled(at::full({2}, 2.0))[0].item<float>(), 6);
  EXPECT_EQ(compiled(w)[0].item<float>(), 9);
}

TEST(Compile, WhatCannotBeCompiledRunsEagerlyOrIsRefused) {
  auto fn = [](const at::Tensor& x) -> at::Tensor { return x * x.sum().item<float>(); };
  auto compiled = compile(fn);
  auto x = at::ones({3});
  for (int i = 0; i < 2; ++i) expect_identical(compiled(x), fn(x));
  EXPECT_EQ(compiled.report().eager_calls, 2u);
  EXPECT_THAT(compiled.report().fallback_reasons.at(0), HasSubstr("_local_scalar_dense"));
  auto strict = compile(fn, {.policy = Policy::Refuse});
  EXPECT_THROW(strict(x), c10::Error);
}

TEST(Compile, UndeclaredCapturesAreRefusedUnderRefuse) {
  auto w = at::ones({3});
  auto fn = [&](const at::Tensor& x) -> at::Tensor { return x * w; };
  auto strict = compile(fn, {.policy = Policy::Refuse});
  try {
    strict(at::ones({3}));
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("f32[3]"));
    EXPECT_THAT(error.what(), HasSubstr("aten::mul.Tensor"));
    EXPECT_THAT(error.what(), HasSubstr(".tensors = {tensor}"));
  }
  auto declared = compile(fn, {.tensors = {w}, .policy = Policy::Refuse});
  EXPECT_EQ(declared(at::ones({3}))[0].item<float>(), 1);
}

TEST(Compile, TheUsersExceptionsAreEagers) {
  auto compiled = compile([](const at::Tensor& x, const at::Tensor& y) -> at::Tensor {
    TORCH_CHECK_VALUE(x.dim() == 2, "two dimensions, please");
    return at::mm(x, y);
  });
  EXPECT_THROW(compiled(at::ones({3}), at::ones({3})), c10::ValueError);
  EXPECT_THROW(compiled(at::ones({2, 3}), at::ones({2, 3})), c10::Error);
  EXPECT_EQ(compiled.report().eager_calls, 0u) << "the user's error is no fall-back";
  EXPECT_EQ(compiled(at::ones({2, 3}), at::ones({3, 2})).sizes(), at::IntArrayRef({2, 2}));
}

TEST(Compile, WhatTracingCannotDoIsTriedOnce) {
  int runs = 0;
  auto compiled = compile([&](const at::Tensor& x) -> at::Tensor {
    ++runs;
    return x * x.data_ptr<float>()[0];
  });
  auto x = at::full({2}, 2.0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(compiled(x)[1].item<float>(), 4);
  EXPECT_EQ(compiled.report().eager_calls, 3u);
  EXPECT_EQ(runs, 4);
}

TEST(Compile, ACallThatThrowsHasDrawnNoRandomNumbersAndWrittenNothing) {
  auto total = at::zeros({3});
  auto compiled = compile(
      [&](const at::Tensor& index) -> at::Tensor {
        total.add_(1);
        return at::rand({3}).index_select(0, index);
      },
      {.tensors = {total}});
  at::manual_seed(5);
  auto expected = at::rand({1});
  compiled(at::tensor({0}));
  at::manual_seed(5);
  EXPECT_THROW(compiled(at::tensor({7})), c10::Error);
  EXPECT_TRUE(at::equal(at::rand({1}), expected));
  EXPECT_TRUE(at::equal(total, at::ones({3})));
}

TEST(Compile, RequiresGradSetOnAnInputIsNotLost) {
  auto compiled = compile([](at::Tensor x) -> at::Tensor { return x.requires_grad_(true) * 2; });
  auto x = at::ones({2});
  EXPECT_TRUE(compiled(x).requires_grad());
  EXPECT_TRUE(x.requires_grad());
  EXPECT_EQ(compiled.report().eager_calls, 0u);
}

TEST(Compile, UnsupportedTensorsRunEagerly) {
  auto compiled = compile([](const at::Tensor& x) -> at::Tensor { return x * 2; });
  EXPECT_TRUE(compiled(at::eye(3).to_sparse()).is_sparse());
  EXPECT_EQ(compiled.report().eager_calls, 1u);
}

TEST(Compile, ChangedStateIsNoticedWhenTheFunctionIsRecordedAgain) {
  int mode = 0;
  auto compiled =
      compile([&](const at::Tensor& x) -> at::Tensor { return mode == 0 ? x + 1 : x * 5; });
  auto x = at::ones({2});
  compiled(x);
  mode = 1;
  EXPECT_EQ(compiled(x)[0].item<float>(), 5) << "call 2 records again";
  EXPECT_THAT(compiled.report().recompiles.at(0), HasSubstr("aten::mul"));
}

TEST(Compile, BackwardTwiceNeedsRetainGraphAsEager) {
  auto compiled = compile([](const at::Tensor& x) -> at::Tensor { return (x.exp() * x).sum(); });
  auto x = random_leaf({3});
  auto y = compiled(x);
  y.backward({}, /*retain_graph=*/true);
  auto once = x.grad().clone();
  y.backward();
  expect_identical(x.grad(), once * 2);
  EXPECT_THROW(y.backward(), c10::Error);
}

TEST(Compile, AWriteToWhatBackwardNeedsIsEagersError) {
  auto compiled =
      compile([](const at::Tensor& x, const at::Tensor& y) -> at::Tensor { return (x * y).exp(); });
  auto x = random_leaf({3});
  auto y = at::ones({3});
  auto z = compiled(x, y);
  y.add_(1);
  EXPECT_THROW(z.sum().backward(), c10::Error);
  auto again = compiled(x, y);
  {
    at::NoGradGuard no_grad;
    again.add_(1);
  }
  EXPECT_THROW(again.sum().backward(), c10::Error);
}

TEST(Compile, ACompiledFunctionInsideACompiledFunctionIsPartOfIt) {
  auto inner = compile([](const at::Tensor& x) -> at::Tensor { return x.exp(); });
  auto outer = compile([&](const at::Tensor& x) -> at::Tensor { return inner(x) * 2; });
  auto x = random_leaf({3});
  expect_identical(outer(x).detach(), x.detach().exp() * 2);
  EXPECT_TRUE(inner.report().specialisations.empty());
  EXPECT_EQ(outer.report().eager_calls, 0u);
}

TEST(Compile, SeveralThreadsShareOneCompiledFunction) {
  auto compiled = compile([](const at::Tensor& x) -> at::Tensor { return (x.sin() * x).sum(); });
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        auto x = at::full({3 + t % 2}, 0.5).requires_grad_();
        compiled(x).backward();
        auto d = x.detach();
        wrong += !at::allclose(x.grad(), d.sin() + d * d.cos());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace foregrad
