// Gradients of gradients of compiled functions, to any order.
#include "semantics/eager_twin.h"
#include "support/values.h"

#include <torch/csrc/autograd/autograd.h>

namespace foregrad::testing {
namespace {

using torch::autograd::grad;

/// Weights that make each element of a gradient count.
at::Tensor weighted_sum(const at::Tensor& x) {
  return (x * at::arange(1, x.numel() + 1, x.options()).view(x.sizes()).cos()).sum();
}

at::Tensor total_of(const Tensors& tensors) {
  at::Tensor total = at::zeros({});
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad() && tensor.is_floating_point())
      total = total + weighted_sum(tensor);
  }
  return total;
}

/// Differentiates `order` times, each time the weighted sum of what came before; in the end by
/// `backward()`.
TwinCaller to_order(int order) {
  return [order](const Tensors& arguments, const Tensors& outputs) {
    Tensors leaves;
    for (const at::Tensor& argument : arguments) {
      if (argument.requires_grad() && argument.is_leaf()) leaves.push_back(argument);
    }
    Tensors seen;
    at::Tensor total = total_of(outputs);
    for (int i = 1; i < order && total.requires_grad(); ++i) {
      const Tensors grads = grad({total}, leaves, {}, true, /*create_graph=*/true, true);
      for (const at::Tensor& g : grads) {
        seen.push_back(g.defined() ? g.detach() : at::Tensor());
        seen.push_back(at::full({}, g.defined() && g.requires_grad()));
      }
      total = total_of(grads);
    }
    if (total.requires_grad()) total.backward();
    return seen;
  };
}

void expect_all_orders(const Program& program, const MakeState& make) {
  for (int order = 1; order <= 4; ++order) {
    SCOPED_TRACE(order);
    EXPECT_EQ(expect_twin(program, make, to_order(order)), 0U);
  }
}

TEST(HigherOrder, PointwiseFunctions) {
  expect_all_orders(
      [](Tensors in) -> Tensors { return {in[0].sin() * in[0] + in[1].exp() / in[0]}; },
      []() -> Tensors {
        return {random_leaf({3}), random_leaf({3})};
      });
}

TEST(HigherOrder, ALinearFunctionHandsTheTangentOn) {
  expect_all_orders([](Tensors in) -> Tensors { return {in[0] + in[1]}; },
                    []() -> Tensors {
                      return {random_leaf({3}), random_leaf({3})};
                    });
  expect_all_orders([](Tensors in) -> Tensors { return {in[0].t() * 2 + in[1]}; },
                    []() -> Tensors {
                      return {random_leaf({3, 2}), random_leaf({3})};
                    });
}

TEST(HigherOrder, ProductsAndReductions) {
  expect_all_orders(
      [](Tensors in) -> Tensors {
        const at::Tensor h = at::tanh(in[0].mm(in[1]) + in[2]);
        return {h.softmax(1).log().mean(0), h.pow(3).sum()};
      },
      []() -> Tensors {
        return {random_leaf({4, 3}), random_leaf({3, 5}), random_leaf({5})};
      });
}

TEST(HigherOrder, SeveralOutputsAndAnUnusedInput) {
  expect_all_orders(
      [](Tensors in) -> Tensors {
        return {in[0].exp(), in[1].pow(3), in[0] * in[1]};
      },
      []() -> Tensors {
        return {random_leaf({3}), random_leaf({3}), random_leaf({2})};
      });
}

TEST(HigherOrder, AMutatedInput) {
  expect_all_orders(
      [](Tensors in) -> Tensors {
        const at::Tensor before = in[1].clone().pow(3);
        in[1].mul_(in[0]);
        return {before * in[1]};
      },
      []() -> Tensors {
        return {random_leaf({3}), random_leaf({3}) * 1};
      });
  expect_all_orders(
      [](Tensors in) -> Tensors {
        in[1].slice(0, 0, 2).mul_(in[0]);
        return {in[1].exp(), in[1].view({2, 2})};
      },
      []() -> Tensors {
        return {random_leaf({2}), at::randn({4})};
      });
}

TEST(HigherOrder, DerivativesThatAreZero) {
  expect_all_orders(
      [](Tensors in) -> Tensors {
        return {in[0].abs(), in[0].relu() * in[0]};
      },
      []() -> Tensors { return {random_leaf({3})}; });
}

TEST(HigherOrder, TensorsWithoutElements) {
  expect_all_orders(
      [](Tensors in) -> Tensors {
        return {in[0].sin(), in[0].sum()};
      },
      []() -> Tensors { return {random_leaf({0})}; });
}

TEST(HigherOrder, AForwardValueThatBackwardReadsInPlaceOfTheInput) {
  const auto cosine = [](const at::Tensor& x) -> Tensors {
    return {x.cos(), x.sin().detach() * 2};
  };
  const auto differentiated = [](auto&& called) {
    torch::manual_seed(1);
    const at::Tensor x = random_leaf({3});
    Tensors all = {called(x)[0]};
    for (int order = 1; order <= 4; ++order)
      all.push_back(grad({weighted_sum(all.back())}, {x}, {}, true, true)[0]);
    return all;
  };
  const auto compiled = compile(cosine, {.policy = Policy::Refuse});
  const Tensors eager = differentiated(cosine);
  const Tensors got = differentiated(compiled);
  // Sums are taken in another order.
  for (size_t i = 0; i < eager.size(); ++i)
    EXPECT_TRUE(at::allclose(got[i], eager[i], 1e-5, 1e-6)) << i;
}

TEST(HigherOrder, ATangentOfAFreedArgumentIsAnError) {
  const auto compiled = compile([](const at::Tensor& x) -> Tensors {
    return {x.cos(), x.sin().detach() * 2};
  });
  const at::Tensor x = random_leaf({3});
  const at::Tensor y = compiled(x * 1)[0];
  // Backward reads the second result in place of the argument, which nobody holds.
  const at::Tensor first = grad({y.sum()}, {x}, {}, true)[0];
  EXPECT_TRUE(at::allclose(first, -x.sin()));
  EXPECT_THROW(grad({y.sum()}, {x}, {}, true, /*create_graph=*/true), c10::Error);
}

TEST(HigherOrder, ATangentWithAHistory) {
  const auto fn = [](const at::Tensor& x, const at::Tensor& y) { return x.sin() * y; };
  const auto differentiated = [](auto&& called) {
    torch::manual_seed(1);
    const Tensors in = {random_leaf({3}), random_leaf({3}), random_leaf({3})};
    const Tensors first =
        grad({called(in[0], in[1])}, {in[0], in[1]}, {in[2].exp()}, true, true, true);
    const Tensors second = grad({total_of(first)}, {in[0], in[2]}, {}, true, true, true);
    total_of(second).backward();
    return Tensors{first[0],     first[1],     second[0],   second[1],
                   in[0].grad(), in[1].grad(), in[2].grad()};
  };
  const Tensors eager = differentiated(fn);
  const Tensors compiled = differentiated(compile(fn));
  // What comes through the call is one sum of its own.
  for (size_t i = 0; i < eager.size(); ++i)
    EXPECT_TRUE(at::allclose(compiled[i], eager[i], 1e-5, 1e-6)) << i;
}

TEST(HigherOrder, AGradientLeadsToTheResultThatItIsComputedFrom) {
  const auto fn = [](const at::Tensor& x) { return x.softmax(0); };
  const auto differentiated = [](auto&& called) {
    torch::manual_seed(1);
    const at::Tensor x = random_leaf({3});
    const at::Tensor y = called(x);
    const Tensors first = grad({weighted_sum(y)}, {x}, {}, true, true);
    return grad({weighted_sum(first[0])}, {x, y}, {}, true, false, true);
  };
  const Tensors eager = differentiated(fn);
  const Tensors compiled = differentiated(compile(fn));
  ASSERT_TRUE(eager[1].defined() && compiled[1].defined());
  for (size_t i = 0; i < eager.size(); ++i)
    EXPECT_TRUE(at::allclose(compiled[i], eager[i], 1e-5, 1e-6)) << i;
}

TEST(HigherOrder, ATangentOfAnotherLayout) {
  expect_twin([](Tensors in) -> Tensors { return {in[0].sin() * in[0]}; },
              []() -> Tensors {
                return {random_leaf({3, 2})};
              },
              [](const Tensors& in, const Tensors& outputs) -> Tensors {
                const at::Tensor tangent = at::randn({2, 3}).t().requires_grad_();
                const Tensors first = grad({outputs[0]}, {in[0]}, {tangent}, true, true, true);
                return grad({total_of(first)}, {in[0], tangent}, {}, true, false, true);
              });
}

TEST(HigherOrder, AHookSeesTheGradientWithItsHistory) {
  expect_twin([](Tensors in) -> Tensors { return {in[0].pow(3)}; },
              []() -> Tensors { return {random_leaf({3})}; },
              [](const Tensors& in, const Tensors& outputs) -> Tensors {
                in[0].register_hook([](const at::Tensor& g) { return g * g; });
                const Tensors first = grad({outputs[0].sum()}, {in[0]}, {}, true, true);
                first[0].sum().backward();
                return {first[0].detach()};
              });
}

TEST(HigherOrder, AWriteBetweenTheOrdersIsEagersError) {
  auto compiled = compile([](const at::Tensor& x, const at::Tensor& y) { return x.pow(3) * y; });
  const at::Tensor x = random_leaf({3});
  const at::Tensor y = at::randn({3});
  const at::Tensor first = grad({compiled(x, y).sum()}, {x}, {}, true, true)[0];
  {
    const at::NoGradGuard no_grad;
    x.add_(1);
  }
  EXPECT_THROW(first.sum().backward(), c10::Error);
}

TEST(HigherOrder, AWriteToAnArgumentInAMemoryIsEagersError) {
  auto compiled = compile([](const at::Tensor& x, const at::Tensor& y) { return x.mul_(y); });
  const at::Tensor weight = random_leaf({4});
  const at::Tensor base = weight * 1;
  const at::Tensor shared = at::randn({4});
  const at::Tensor y = shared.as_strided({2}, {1}, 1);
  const at::Tensor x = base.as_strided({2}, {1}, 2);
  const at::Tensor result = compiled(x, y);
  y.add_(1);
  EXPECT_THROW(grad({result.sum()}, {weight}, {}, true, /*create_graph=*/true), c10::Error);
}

TEST(HigherOrder, FirstOrderCallsAreAsBefore) {
  auto compiled = compile([](const at::Tensor& x) { return x.pow(3); });
  const at::Tensor x = random_leaf({3});
  const at::Tensor first = grad({compiled(x).sum()}, {x})[0];
  EXPECT_FALSE(first.requires_grad());
}

TEST(HigherOrder, AGradientInsideTheFunction) {
  expect_all_orders(
      [](Tensors in) -> Tensors {
        const at::Tensor energy = (in[0].sin() * in[1]).sum();
        const Tensors force = grad({energy}, {in[0]}, {}, true, /*create_graph=*/true);
        return {energy, force[0]};
      },
      []() -> Tensors {
        return {random_leaf({3}), random_leaf({3})};
      });
}

}  // namespace
}  // namespace foregrad::testing
