// Several threads call one compiled function, forward and backward, while others compile it.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "foregrad/compile.h"
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

void run_on_threads(int count, const std::function<void(int)>& action) {
  std::vector<std::thread> threads;
  threads.reserve(count);
  for (int t = 0; t < count; ++t) threads.emplace_back(action, t);
  for (std::thread& thread : threads) thread.join();
}

constexpr int kThreads = 4;
constexpr int kCalls = 12;

at::Tensor loss_of(const at::Tensor& x, const at::Tensor& weight) {
  return (x.matmul(weight).tanh() * x.sin()).sum();
}

at::Tensor argument(int64_t rows, int seed) {
  return (at::arange(rows * 3, at::kDouble).reshape({rows, 3}) + seed).remainder(5) / 4;
}

TEST(Threads, CallForwardAndBackwardWhileOthersCompile) {
  const auto compiled = compile(loss_of, {.max_specialisations = 64});
  std::atomic<int> wrong = 0;
  run_on_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kCalls; ++i) {
      // Each thread meets sizes that others compile at that moment, and that they know.
      const int64_t rows = 1 + (thread + i) % 6;
      const at::Tensor weight = at::eye(3, at::kDouble).mul(1 + thread).requires_grad_();
      const at::Tensor x = argument(rows, thread).requires_grad_();
      const auto got = torch::autograd::grad({compiled(x, weight)}, {x, weight});
      const auto eager = torch::autograd::grad({loss_of(x, weight)}, {x, weight});
      for (size_t k = 0; k < eager.size(); ++k) wrong += !at::allclose(got[k], eager[k]);
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(compiled.report().eager_calls, 0U);
}

TEST(Threads, OneBackwardInEachOfSeveralThreads) {
  const auto compiled = compile(loss_of);
  const at::Tensor weight = at::eye(3, at::kDouble).requires_grad_();
  std::vector<at::Tensor> losses;
  std::vector<at::Tensor> arguments;
  for (int t = 0; t < kThreads; ++t) {
    arguments.push_back(argument(2, t).requires_grad_());
    losses.push_back(compiled(arguments.back(), weight));
  }
  run_on_threads(kThreads, [&](int thread) { losses[thread].backward(); });
  at::Tensor total = at::zeros({3, 3}, at::kDouble);
  for (int t = 0; t < kThreads; ++t) {
    const auto eager =
        torch::autograd::grad({loss_of(arguments[t], weight)}, {arguments[t], weight});
    EXPECT_TRUE(at::allclose(arguments[t].grad(), eager[0]));
    total += eager[1];
  }
  EXPECT_TRUE(at::allclose(weight.grad(), total));
}

TEST(Threads, TakeGradientsOfGradientsWhileOthersCompileThem) {
  const auto compiled = compile(loss_of);
  std::atomic<int> wrong = 0;
  run_on_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kCalls / 4; ++i) {
      const at::Tensor weight = at::eye(3, at::kDouble).requires_grad_();
      const at::Tensor x = argument(1 + i, thread).requires_grad_();
      const auto second = [&](const at::Tensor& loss) {
        const at::Tensor first = torch::autograd::grad({loss}, {x}, {}, true, true)[0];
        return torch::autograd::grad({first.square().sum()}, {x, weight});
      };
      const auto got = second(compiled(x, weight));
      const auto eager = second(loss_of(x, weight));
      for (size_t k = 0; k < eager.size(); ++k) wrong += !at::allclose(got[k], eager[k]);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, OneBackwardIsTakenBySeveralThreads) {
  const auto compiled = compile(loss_of);
  const at::Tensor weight = at::eye(3, at::kDouble).requires_grad_();
  const at::Tensor x = argument(2, 1).requires_grad_();
  const at::Tensor loss = compiled(x, weight);
  const auto eager = torch::autograd::grad({loss_of(x, weight)}, {x, weight});
  std::atomic<int> wrong = 0;
  run_on_threads(kThreads, [&](int /*thread*/) {
    for (int i = 0; i < kCalls; ++i) {
      const auto got = torch::autograd::grad({loss}, {x, weight}, {}, /*retain_graph=*/true);
      for (size_t k = 0; k < eager.size(); ++k) wrong += !at::allclose(got[k], eager[k]);
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace foregrad::testing
