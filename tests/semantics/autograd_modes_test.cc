// Anomaly mode, deterministic algorithms and inference mode, as eager knows them.
#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

/// Its gradient is not a number where the argument is zero.
Tensors root_of_square(const Tensors& in) { return {(in[0] * in[0]).sqrt() * 2}; }

Start with_a_zero() { return {{at::tensor({0.F, 1.F, 2.F}).requires_grad_()}}; }

TEST(AutogradModes, AnomalyModeFindsWhatIsNotANumber) {
  for (const bool checks_nan : {false, true}) {
    SCOPED_TRACE(checks_nan);
    expect_as_eager(root_of_square, with_a_zero, [=](const Called& called) {
      const torch::autograd::DetectAnomalyGuard anomaly(checks_nan);
      bool throws = false;
      try {
        called.results[0].sum().backward();
      } catch (const std::exception& error) {
        throws = std::string(error.what()).find("returned nan values") != std::string::npos;
      }
      EXPECT_EQ(throws, checks_nan);
    });
  }
}

TEST(AutogradModes, AnomalyModeDuringTheCall) {
  const Program under_anomaly = [](const Tensors& in) -> Tensors {
    const torch::autograd::DetectAnomalyGuard anomaly(false);
    return root_of_square(in);
  };
  expect_as_eager(under_anomaly, start_of(Kind::Leaf, {3}));
}

TEST(AutogradModes, AGradientIsTakenInsideUnderAnomalyMode) {
  const Program program = [](const Tensors& in) -> Tensors {
    const at::Tensor energy = in[0].square().sum();
    return {torch::autograd::grad({energy}, {in[0]}, {}, true, true)[0]};
  };
  Twin twin(program);
  const auto under = [](const Program& inner) -> Program {
    return [=](const Tensors& in) {
      const torch::autograd::DetectAnomalyGuard anomaly;
      return inner(in);
    };
  };
  twin.eager = under(twin.eager);
  twin.compiled = under(twin.compiled);
  expect_as_eager(twin, start_of(Kind::Leaf, {3}));
}

class Deterministic {
 public:
  explicit Deterministic(bool warns_only) {
    at::globalContext().setDeterministicAlgorithms(true, warns_only);
  }
  Deterministic(const Deterministic&) = delete;
  Deterministic& operator=(const Deterministic&) = delete;
  ~Deterministic() { at::globalContext().setDeterministicAlgorithms(false, false); }
};

/// `put_` has no deterministic implementation.
Tensors put(const Tensors& in) { return {in[0].put(at::arange(2), in[1])}; }

TEST(AutogradModes, DeterministicAlgorithmsThrowWhereThereAreNone) {
  const auto start = start_of({Kind::Leaf, Kind::Leaf}, {2});
  for (const bool warns_only : {false, true}) {
    SCOPED_TRACE(warns_only);
    Twin twin(put);
    const auto under = [=](const Program& inner) -> Program {
      return [=](const Tensors& in) {
        const Deterministic mode(warns_only);
        return inner(in);
      };
    };
    twin.eager = under(twin.eager);
    twin.compiled = under(twin.compiled);
    expect_like_eager(twin, {{.make = start}});
  }
}

TEST(AutogradModes, AFunctionThatWasCompiledBeforeDeterministicAlgorithmsWereAskedFor) {
  const auto compiled = compile([](const at::Tensor& x, const at::Tensor& source) -> at::Tensor {
    return x.put(at::arange(2), source);
  });
  const at::Tensor x = at::zeros({2}), source = at::ones({2});
  EXPECT_TRUE(compiled(x, source).equal(source));
  {
    const Deterministic mode(false);
    EXPECT_THROW(compiled(x, source), c10::Error);
  }
  EXPECT_TRUE(compiled(x, source).equal(source));
}

/// What a caller in inference mode gets, and what it may do with it later.
Twin in_inference_mode(Program program) {
  Twin twin(std::move(program));
  const auto under = [](const Program& inner) -> Program {
    return [=](const Tensors& in) {
      const c10::InferenceMode mode;
      return inner(in);
    };
  };
  twin.eager = under(twin.eager);
  twin.compiled = under(twin.compiled);
  return twin;
}

TEST(AutogradModes, AFunctionIsCalledInInferenceMode) {
  const auto start = start_of({Kind::Leaf, Kind::Plain}, {3});
  expect_as_eager(in_inference_mode([](const Tensors& in) -> Tensors {
                    return {in[0] * in[1], in[1].t()};
                  }),
                  start, look_only);
  expect_as_eager(in_inference_mode([](const Tensors& in) -> Tensors {
                    return {in[1].mul_(2), in[0] + 1};
                  }),
                  start, look_only);
}

TEST(AutogradModes, WritesAndViewsInInferenceMode) {
  const Program program = [](const Tensors& in) -> Tensors {
    const at::Tensor made = in[0] + 1;
    const at::Tensor part = made.select(0, 1);
    made.mul_(2);
    in[0].t().add_(part.sum());
    return {made, part, in[0].view({6}), in[0], in[0].detach()};
  };
  expect_as_eager(in_inference_mode(program), start_of(Kind::Plain, {2, 3}), look_only);
  const MakeStart made_inside = []() -> Start {
    const c10::InferenceMode mode;
    return {{at::ones({2, 3})}};
  };
  expect_as_eager(in_inference_mode(program), made_inside, look_only);
}

TEST(AutogradModes, OneFunctionInsideAndOutsideOfInferenceMode) {
  const auto compiled = compile([](const at::Tensor& x) -> at::Tensor { return x.exp(); });
  const at::Tensor x = at::ones({2}).requires_grad_();
  EXPECT_FALSE(compiled(x).is_inference());
  {
    const c10::InferenceMode mode;
    EXPECT_TRUE(compiled(x).is_inference());
    EXPECT_TRUE(compiled(at::ones({2})).is_inference());
  }
  compiled(x).sum().backward();
  EXPECT_TRUE(x.grad().allclose(x.detach().exp()));
  EXPECT_EQ(compiled.report().eager_calls, 0U);
}

TEST(AutogradModes, WhatWasMadeInInferenceModeIsAnArgument) {
  const MakeStart start = []() -> Start {
    const c10::InferenceMode mode;
    return {{at::ones({3})}};
  };
  const Program product = [](const Tensors& in) -> Tensors { return {in[0] * 2}; };
  expect_as_eager(in_inference_mode(product), start, look_only);
  expect_refused(product, start, "made in inference mode");
}

TEST(AutogradModes, ARegionOfInferenceModeIsRefused) {
  expect_refused(
      [](const Tensors& in) -> Tensors {
        at::Tensor inner;
        {
          const c10::InferenceMode mode;
          inner = in[0] * 2;
        }
        return {in[0] + 1, inner};
      },
      start_of(Kind::Leaf, {3}), "which the function enters");
}

struct Twice : torch::autograd::Function<Twice> {
  static at::Tensor forward(torch::autograd::AutogradContext* /*ctx*/, const at::Tensor& x) {
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*ctx*/,
                                                 const torch::autograd::variable_list& grads) {
    return {grads[0] * 2};
  }
};

TEST(AutogradModes, GradModeInsideOfInferenceMode) {
  expect_as_eager(in_inference_mode([](const Tensors& in) -> Tensors {
                    const at::AutoGradMode grad_mode(true);
                    const at::Tensor twice = in[0] * 2;
                    twice.requires_grad_();
                    return {twice, twice.view({3, 1}), in[0].select(0, 1)};
                  }),
                  start_of(Kind::Leaf, {3}), look_only);
  expect_refused(in_inference_mode([](const Tensors& in) -> Tensors {
                   const at::AutoGradMode grad_mode(true);
                   return {Twice::apply(in[0])};
                 }),
                 start_of(Kind::Leaf, {3}), "which the function switches on", look_only);
}

}  // namespace
}  // namespace foregrad::testing
