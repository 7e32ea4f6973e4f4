// Autocast
#include "support/autocast.h"
#include "foregrad/compile.h"
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

at::Tensor product(const at::Tensor& x, const at::Tensor& w) { return x.matmul(w); }

/// Calls forward under one state and backward under another, compiled with the option; the
/// gradients must be eager's with backward under `expected`.
void expect_backward_as_eager(BackwardAutocast option, bool forward, bool backward, bool expected) {
  const at::Tensor x = at::randn({4, 6}).requires_grad_();
  const at::Tensor w = at::randn({6, 5}).requires_grad_();
  const at::Tensor tangent = at::randn({4, 5});
  const auto gradients = [&](const auto& fn, bool state) {
    at::Tensor y;
    {
      const Autocast autocast(forward);
      y = fn(x, w);
    }
    const Autocast autocast(state);
    return torch::autograd::grad({y}, {x, w}, {tangent.to(y.scalar_type())});
  };
  const auto compiled = compile(product, {.policy = Policy::Refuse, .backward_autocast = option});
  const auto got = gradients(compiled, backward);
  const auto eager = gradients(product, expected);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(got[i], eager[i]));
  const auto other = gradients(product, !expected);
  EXPECT_FALSE(!forward && at::equal(got[0], other[0])) << "the states make no difference";
}

using State = BackwardAutocast::State;

// As in eager, backward runs under the autocast state that it is called under.
TEST(Behaviours, B117_BackwardUnderTheStateThatItIsCalledUnder) {
  for (const bool forward : {false, true}) {
    for (const bool backward : {false, true})
      expect_backward_as_eager({}, forward, backward, backward);
  }
}

// Or, by an option, under forward's.
TEST(Behaviours, B117_BackwardUnderForwardsState) {
  for (const bool forward : {false, true})
    expect_backward_as_eager({.state = State::AsForward}, forward, !forward, forward);
}

// Or without autocast.
TEST(Behaviours, B118_BackwardWithoutAutocast) {
  for (const bool forward : {false, true})
    expect_backward_as_eager({.state = State::Off}, forward, true, false);
}

// Or under a state that is given.
TEST(Behaviours, B119_BackwardUnderAStateThatIsGiven) {
  for (const bool forward : {false, true})
    expect_backward_as_eager({.state = State::On, .dtype = at::kBFloat16}, forward, false, true);
}

// A guard inside the function wins over the state around it.
TEST(Behaviours, B120_AGuardInsideWins) {
  const Autocast around(true);
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const Autocast off(false);
        return {in[0].matmul(in[1])};
      },
      start_of({Kind::Leaf, Kind::Leaf}, {4, 4}));
}

}  // namespace
}  // namespace foregrad::testing
