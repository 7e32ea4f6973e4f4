// Models that keep state and write it in place, trained for some steps beside their eager twin from
// equal states: losses, parameters and buffers agree bit for bit, and no call runs eagerly.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/optim/sgd.h>

#include "foregrad/compile.h"

namespace foregrad::testing {
namespace {

using torch::nn::Linear;

/// Parameters and buffers, with names.
template <class Module>
auto state_of(const Module& module) {
  auto state = module->named_parameters();
  for (const auto& buffer : module->named_buffers()) state.insert(buffer.key(), buffer.value());
  return state;
}

template <class Module>
void expect_same_state(const Module& compiled, const Module& eager, int step) {
  const auto expected = state_of(eager);
  for (const auto& entry : state_of(compiled)) {
    EXPECT_TRUE(at::equal(entry.value(), expected[entry.key()]))
        << "step " << step << ", `" << entry.key() << "`:\n"
        << entry.value() << "\neager\n"
        << expected[entry.key()];
  }
}

/// Trains two modules made from equal generator states: one eagerly, one with its `forward`
/// compiled. `inputs` makes the arguments of one step.
template <class Module, class MakeInputs>
void expect_same_training(MakeInputs inputs, int steps) {
  at::manual_seed(5);
  Module eager;
  at::manual_seed(5);
  Module trained;
  auto compiled = compile(trained);
  torch::optim::SGD eager_sgd(eager->parameters(), 0.05);
  torch::optim::SGD sgd(trained->parameters(), 0.05);
  for (int step = 0; step < steps; ++step) {
    at::manual_seed(100 + step);
    const auto arguments = inputs(step);
    eager_sgd.zero_grad();
    sgd.zero_grad();
    const auto expected =
        std::apply([&](const auto&... a) { return eager->forward(a...); }, arguments);
    const auto loss = std::apply([&](const auto&... a) { return compiled(a...); }, arguments);
    EXPECT_TRUE(at::equal(loss, expected)) << "step " << step << ": " << loss << " " << expected;
    expected.backward();
    loss.backward();
    eager_sgd.step();
    sgd.step();
    expect_same_state(trained, eager, step);
  }
  const Report report = compiled.report();
  EXPECT_EQ(report.eager_calls, 0u);
  for (const auto& reason : report.fallback_reasons) ADD_FAILURE() << "refused: " << reason;
}

constexpr int64_t kWidth = 4;
constexpr int64_t kPlaces = 6;

/// One layer of a decoder: attends to the keys and values of the tokens so far, which it keeps.
struct DecoderImpl : torch::nn::Module {
  DecoderImpl() {
    for (auto* linear : {&query, &key, &value, &out})
      *linear = Linear(torch::nn::LinearOptions(kWidth, kWidth));
    register_module("query", query);
    register_module("key", key);
    register_module("value", value);
    register_module("out", out);
    keys = register_buffer("keys", at::zeros({2, kPlaces, kWidth}));
    values = register_buffer("values", at::zeros({2, kPlaces, kWidth}));
  }

  /// The loss of one token at `place`.
  at::Tensor forward(const at::Tensor& token, const at::Tensor& target, int64_t place) {
    const auto k = key(token);
    const auto v = value(token);
    {
      const at::NoGradGuard no_grad;
      keys.select(1, place).copy_(k);
      values.select(1, place).copy_(v);
    }
    // The token's own key and value are differentiated, those of the past are not.
    const auto past_keys = at::cat({keys.slice(1, 0, place), k.unsqueeze(1)}, 1);
    const auto past_values = at::cat({values.slice(1, 0, place), v.unsqueeze(1)}, 1);
    const auto scores = at::softmax(at::bmm(past_keys, query(token).unsqueeze(2)).squeeze(2), 1);
    const auto read = at::bmm(scores.unsqueeze(1), past_values).squeeze(1);
    return (out(read) - target).pow(2).mean();
  }

  Linear query{nullptr}, key{nullptr}, value{nullptr}, out{nullptr};
  at::Tensor keys, values;
};
TORCH_MODULE(Decoder);

TEST(StatefulModels, ADecoderWritesItsCacheOfKeysAndValues) {
  expect_same_training<Decoder>(
      [](int step) {
        return std::tuple(at::randn({2, kWidth}), at::randn({2, kWidth}), int64_t{step % kPlaces});
      },
      2 * kPlaces);
}

/// A network and its slow copy, which moves towards it at each step.
struct WithTargetImpl : torch::nn::Module {
  WithTargetImpl() : online(kWidth, kWidth), target(kWidth, kWidth) {
    register_module("online", online);
    register_module("target", target);
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < 2; ++i) {
      auto slow = target->parameters()[i];
      slow.copy_(online->parameters()[i]);
      slow.requires_grad_(false);
    }
  }

  at::Tensor forward(const at::Tensor& state, const at::Tensor& next) {
    at::Tensor goal;
    {
      const at::NoGradGuard no_grad;
      for (const auto& [slow, fast] :
           {std::pair(target->weight, online->weight), std::pair(target->bias, online->bias)}) {
        slow.mul_(0.75).add_(fast, 0.25);
      }
      goal = at::tanh(target(next));
    }
    return at::mse_loss(at::tanh(online(state)), goal);
  }

  Linear online, target;
};
TORCH_MODULE(WithTarget);

TEST(StatefulModels, ATargetNetworkFollowsByExponentialAveraging) {
  expect_same_training<WithTarget>(
      [](int) {
        return std::tuple(at::randn({3, kWidth}), at::randn({3, kWidth}));
      },
      10);
}

/// An LSTM cell that keeps its state between steps.
struct RecurrentImpl : torch::nn::Module {
  RecurrentImpl() : cell(kWidth, kWidth), out(kWidth, 1) {
    register_module("cell", cell);
    register_module("out", out);
    hidden = register_buffer("hidden", at::zeros({2, kWidth}));
    memory = register_buffer("memory", at::zeros({2, kWidth}));
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& target) {
    const auto [h, c] = cell(x, std::make_tuple(hidden.clone(), memory.clone()));
    hidden.copy_(h.detach());
    memory.copy_(c.detach());
    return (out(h) - target).pow(2).mean();
  }

  torch::nn::LSTMCell cell;
  Linear out;
  at::Tensor hidden, memory;
};
TORCH_MODULE(Recurrent);

TEST(StatefulModels, AnLstmKeepsItsStateInBuffers) {
  expect_same_training<Recurrent>(
      [](int) {
        return std::tuple(at::randn({2, kWidth}), at::randn({2, 1}));
      },
      10);
}

/// Particles in a potential with parameters: positions and velocities advance in place, and the
/// gradient flows through all steps of a call.
at::Tensor simulate(const at::Tensor& position, const at::Tensor& velocity,
                    const at::Tensor& stiffness) {
  for (int step = 0; step < 4; ++step) {
    // The force is taken of a copy: backward needs the position from before the step.
    velocity.add_(position.clone() * stiffness, -0.125);
    position.add_(velocity, 0.125);
  }
  return position.pow(2).sum();
}

TEST(StatefulModels, ASimulatorAdvancesItsStateInPlaceAndIsDifferentiated) {
  struct State {
    at::Tensor position, velocity, stiffness;
  };
  const auto make = []() -> State {
    at::manual_seed(3);
    return {at::randn({5, 2}), at::randn({5, 2}), at::rand({5, 1}).requires_grad_()};
  };
  State eager = make();
  State got = make();
  auto compiled = compile(simulate);
  for (int step = 0; step < 8; ++step) {
    const auto expected = simulate(eager.position, eager.velocity, eager.stiffness);
    const auto loss = compiled(got.position, got.velocity, got.stiffness);
    EXPECT_TRUE(at::equal(loss, expected)) << "step " << step;
    expected.backward();
    loss.backward();
    // State and loss have histories of their own: the gradient is a sum of two.
    EXPECT_TRUE(at::allclose(got.stiffness.grad(), eager.stiffness.grad(), 1e-5, 1e-6))
        << "step " << step;
    for (State* state : {&eager, &got}) {
      EXPECT_TRUE(state->position.requires_grad());
      state->position.detach_();
      state->velocity.detach_();
      const at::NoGradGuard no_grad;
      state->stiffness.sub_(state->stiffness.grad(), 0.01);
      state->stiffness.mutable_grad().reset();
    }
    EXPECT_TRUE(at::equal(got.position, eager.position)) << "step " << step;
    EXPECT_TRUE(at::equal(got.velocity, eager.velocity)) << "step " << step;
  }
  EXPECT_EQ(compiled.report().eager_calls, 0u);
}

}  // namespace
}  // namespace foregrad::testing
