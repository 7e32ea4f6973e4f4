// Autocast: what is cast is decided when a function is traced; backward runs under the state that
// it is called in.
#include "support/autocast.h"
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

Tensors network(const Tensors& in) {
  const at::Tensor h = in[0].matmul(in[1]).relu();
  return {h.matmul(in[1].t()).softmax(1), h.square().sum()};
}

/// A region of it is always off, another always on.
Tensors guarded(const Tensors& in) {
  at::Tensor h;
  {
    const Autocast off(false);
    h = in[0].matmul(in[1]);
  }
  const Autocast on(true);
  return {h.matmul(in[1].t()), h};
}

at::Tensor total_in_float(const Tensors& results) {
  at::Tensor total = at::zeros({});
  for (const at::Tensor& result : results) total = total + result.to(at::kFloat).square().sum();
  return total;
}

Start numbers() {
  return {{at::randn({4, 6}).requires_grad_(), at::randn({6, 5}).requires_grad_()}};
}

/// Runs forward and backward under the states.
void expect_as_eager_under(const Program& program, bool forward, bool backward) {
  const auto under = [](const Program& inner, bool enabled) -> Program {
    return [=](const Tensors& in) {
      const Autocast state(enabled);
      return inner(in);
    };
  };
  Twin twin(program);
  twin.eager = under(twin.eager, forward);
  twin.compiled = under(twin.compiled, forward);
  expect_as_eager(twin, numbers, [=](const Called& called) {
    const at::Tensor total = total_in_float(called.results);
    const Autocast state(backward);
    const auto gradients = torch::autograd::grad({total}, called.arguments);
    for (size_t i = 0; i < gradients.size(); ++i)
      called.seen.note_values("gradient " + std::to_string(i), gradients[i]);
  });
}

TEST(Autocast, BackwardRunsUnderTheStateThatItIsCalledIn) {
  for (const auto& program : {network, guarded}) {
    for (const bool forward : {false, true}) {
      for (const bool backward : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "forward " << forward << ", backward " << backward);
        expect_as_eager_under(program, forward, backward);
      }
    }
  }
}

TEST(Autocast, GradientsOfGradientsToo) {
  const auto compiled = compile(network);
  for (const bool forward : {false, true}) {
    for (const bool backward : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "forward " << forward << ", backward " << backward);
      const Tensors in = numbers().arguments;
      const auto second = [&](const auto& fn) {
        at::Tensor total;
        {
          const Autocast state(forward);
          total = total_in_float(fn(in));
        }
        at::Tensor norm;
        {
          const Autocast state(backward);
          norm = torch::autograd::grad({total}, in, {}, true, true)[0].square().sum();
        }
        const Autocast state(!backward);
        return torch::autograd::grad({norm}, in);
      };
      const auto expected = second(network);
      const auto got = second(compiled);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].scalar_type(), expected[i].scalar_type());
        const double scale = expected[i].abs().max().item<double>();
        EXPECT_TRUE(at::allclose(got[i], expected[i], 0, scale * 0.03)) << got[i] << expected[i];
      }
    }
  }
  EXPECT_EQ(compiled.report().eager_calls, 0U);
}

TEST(Autocast, OneCallMayBeDifferentiatedUnderBothStates) {
  const auto compiled =
      compile([](const at::Tensor& x, const at::Tensor& w) { return x.matmul(w).relu(); });
  const at::Tensor x = at::randn({4, 6}).requires_grad_();
  const at::Tensor w = at::randn({6, 5}).requires_grad_();
  const at::Tensor eager = x.matmul(w).relu();
  const at::Tensor got = compiled(x, w);
  const at::Tensor tangent = at::randn({4, 5});
  for (const bool state : {true, false, true}) {
    const Autocast autocast(state);
    const auto expected = torch::autograd::grad({eager}, {x, w}, {tangent}, true);
    const auto gradients = torch::autograd::grad({got}, {x, w}, {tangent}, true);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(gradients[i], expected[i])) << state;
  }
}

}  // namespace
}  // namespace foregrad::testing
