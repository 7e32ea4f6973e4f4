// Programs on which compilers of tensor programs have been wrong: gradients, grad modes and what is
// saved. The numbers hold for eager and compiled.
#include <cmath>

#include "support/as_eager.h"
#include "support/values.h"

namespace foregrad::testing {
namespace {

at::Tensor numbers(const std::vector<float>& values) { return floats(values).requires_grad_(); }

/// Counts in a buffer: one in forward, ten in backward.
struct CountsCalls : torch::autograd::Function<CountsCalls> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& buffer) {
    ctx->saved_data["buffer"] = buffer;
    buffer.add_(1);
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    ctx->saved_data["buffer"].toTensor().add_(10);
    return {grads[0] * 2, at::Tensor()};
  }
};

TEST(PublicFaults, F03_ACustomFunctionWritesABufferInForwardAndInBackward) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {CountsCalls::apply(in[0], in[1])}; },
                  []() -> Start {
                    return {{at::ones({2}).requires_grad_(), at::zeros({})}};
                  },
                  [](const Called& called) {
                    expect_values(called.arguments[1], {1});
                    called.results[0].sum().backward();
                    expect_values(called.arguments[1], {11});
                  });
}

TEST(PublicFaults, F06_TheGradientOfAGradientTakenOutside) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0].sin() * in[0]}; },
                  []() -> Start {
                    return {{numbers({0.5, 1.5})}};
                  },
                  [](const Called& called) {
                    const auto& x = called.arguments[0];
                    using torch::autograd::grad;
                    auto g = grad({called.results[0].sum()}, {x}, {}, std::nullopt, true)[0];
                    expect_values(g, {.9182, 1.1036}, 1e-4);
                    expect_values(grad({g.sum()}, {x})[0], {1.5155, -1.3548}, 1e-4);
                  });
}

TEST(PublicFaults, F07_AGradientTakenInsideIsDifferentiatedOutside) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return torch::autograd::grad({in[0].pow(3).sum()}, {in[0]}, {}, std::nullopt, true);
      },
      []() -> Start {
        return {{numbers({1, 2, -3})}};
      },
      [](const Called& called) {
        expect_values(called.results[0], {3, 12, 27});
        called.results[0].sum().backward();
        expect_values(called.arguments[0].grad(), {6, 12, -18});
      });
}

TEST(PublicFaults, F27_BackwardUsesTheMaskOfForward) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors { return {at::exp(at::dropout(in[0].sin(), 0.5, true))}; },
      []() -> Start { return {{leaf({64})}}; },
      [](const Called& called) {
        called.results[0].sum().backward();
        const auto dropped = called.results[0].detach() == 1;
        EXPECT_TRUE(at::equal(called.arguments[0].grad() == 0, dropped));
        EXPECT_GT(dropped.sum().item<int64_t>(), 0);
        EXPECT_LT(dropped.sum().item<int64_t>(), 64);
      });
}

TEST(PublicFaults, F33_TheFirstCallIsWithoutGradTheSecondWith) {
  const auto scene = [](bool grad_mode) -> Scene {
    return {.make = []() -> Start {
              return {{plain({3}), leaf({3})}};
            },
            .caller =
                [grad_mode](const Called& called) {
                  EXPECT_EQ(called.results[0].requires_grad(), grad_mode);
                },
            .grad_mode = grad_mode};
  };
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0] * in[1]}; },
                  {scene(false), scene(true)});
}

TEST(PublicFaults, F34_EqualOperatorsUnderOtherGradModesAreNotOne) {
  const Caller caller = [](const Called& called) {
    EXPECT_TRUE(called.results[0].requires_grad());
    EXPECT_FALSE(called.results[1].requires_grad());
    EXPECT_FALSE(called.results[0].is_alias_of(called.results[1]));
  };
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        at::Tensor a;
        {
          const at::AutoGradMode enable(true);
          a = in[0] + 1;
        }
        return {a, in[0] + 1};
      },
      {{.make = start_of(Kind::Leaf, {3}), .caller = caller, .grad_mode = false}});
}

TEST(PublicFaults, F37_TheGradientOfAminIsThatOfTheSmallest) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {at::atan2(in[0], in[1]).amin(-1)}; },
                  []() -> Start {
                    auto x = at::tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2}).requires_grad_();
                    auto y = at::tensor({4.0, 1.0, 1.0, 2.0}).view({2, 2});
                    return {{x, y}};
                  },
                  [](const Called& called) {
                    called.results[0].sum().backward();
                    // atan2 is smallest at (1, 4) and at (4, 2); the derivative is y / (x² + y²).
                    expect_values(called.arguments[0].grad(), {4.0 / 17, 0, 0, 2.0 / 20}, 1e-7);
                  });
}

TEST(PublicFaults, F49_OnlyOneOfTwoResultsIsDifferentiated) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return {in[0].sin(), in[1].sin()};
      },
      start_of({Kind::Leaf, Kind::Leaf}, {3}),
      [](const Called& called) {
        called.results[0].sum().backward();
        EXPECT_TRUE(called.arguments[0].grad().defined());
        EXPECT_FALSE(called.arguments[1].grad().defined());
      });
}

TEST(PublicFaults, F53_BackwardNeedsTheValueFromBeforeAWrite) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto s = in[1].sin();
        auto y = at::tanh(in[0] * s);
        in[1].add_(1);
        return {y};
      },
      []() -> Start {
        return {{numbers({0.5, -1, 2}), floats({0.3F, 1.2F, -0.7F})}};
      },
      [](const Called& called) {
        called.results[0].sum().backward();
        std::vector<double> expected;
        for (const auto& [x, b] : {std::pair(0.5, 0.3), {-1.0, 1.2}, {2.0, -0.7}}) {
          const double s = std::sin(b);
          expected.push_back(s * (1 - std::pow(std::tanh(s * x), 2)));
        }
        expect_values(called.arguments[0].grad(), expected, 1e-6);
      });
}

TEST(PublicFaults, F57_GradientsHaveTheDtypesOfTheirInputs) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0] / in[1]}; },
                  []() -> Start {
                    return {{numbers({1, 2}), at::scalar_tensor(4, at::kDouble).requires_grad_()}};
                  },
                  [](const Called& called) {
                    EXPECT_EQ(called.results[0].scalar_type(), at::kFloat);
                    called.results[0].sum().backward();
                    EXPECT_EQ(called.arguments[0].grad().scalar_type(), at::kFloat);
                    EXPECT_EQ(called.arguments[1].grad().scalar_type(), at::kDouble);
                    expect_values(called.arguments[0].grad(), {0.25, 0.25});
                    expect_values(called.arguments[1].grad(), {-3.0 / 16});
                  });
}

TEST(PublicFaults, F60_BackwardTwiceWithTheGraphRetained) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {(in[0].exp() * in[0]).sum()}; },
                  start_of(Kind::Leaf, {3}),
                  [](const Called& called) {
                    called.results[0].backward({}, /*retain_graph=*/true);
                    const auto once = called.arguments[0].grad().clone();
                    called.results[0].backward({}, /*retain_graph=*/true);
                    EXPECT_TRUE(at::equal(called.arguments[0].grad(), once * 2));
                  });
}

at::Tensor length(const at::Tensor& x) { return x.pow(2).sum().sqrt(); }

TEST(PublicFaults, F62_AForceTakenInsideIsDifferentiatedThroughASquareRoot) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return torch::autograd::grad({length(in[0])}, {in[0]}, {}, std::nullopt, true);
      },
      []() -> Start {
        return {{numbers({3, 4})}};
      },
      [](const Called& called) {
        expect_values(called.results[0], {.6, .8}, 1e-6);
        (called.results[0] * floats({1, 2})).sum().backward();
        expect_values(called.arguments[0].grad(), {-.064, .048}, 1e-6);
      });
}

TEST(PublicFaults, F62_AForceTakenOutsideIsDifferentiatedThroughASquareRoot) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {length(in[0])}; },
                  []() -> Start {
                    return {{numbers({3, 4})}};
                  },
                  [](const Called& called) {
                    const auto force = torch::autograd::grad(called.results, {called.arguments[0]},
                                                             {}, std::nullopt, true)[0];
                    expect_values(force, {.6, .8}, 1e-6);
                    (force * floats({1, 2})).sum().backward();
                    expect_values(called.arguments[0].grad(), {-.064, .048}, 1e-6);
                  });
}

}  // namespace
}  // namespace foregrad::testing
