// Transforms inside of compiled functions, and compiled functions inside of transforms.
#include "foregrad/transforms.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "foregrad/compile.h"
#include "foregrad/jacobian.h"
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

at::Tensor energy(const at::Tensor& x) { return (x.sin() * x.roll(1, 0)).sum(); }

/// The program, whose result is one tensor, compiled: as eager, and its gradients too.
template <class Transformed>
void expect_transformed_as_eager(const Transformed& transformed,
                                 const std::vector<int64_t>& sizes) {
  expect_as_eager([=](const Tensors& in) -> Tensors { return {transformed(in[0]) * 2}; },
                  start_of(Kind::Leaf, sizes));
}

TEST(CompiledTransforms, Grad) { expect_transformed_as_eager(grad(energy), {4}); }

TEST(CompiledTransforms, GradOfGrad) {
  const auto force_norm = [](const at::Tensor& x) { return grad(energy)(x).square().sum(); };
  expect_transformed_as_eager(grad(force_norm), {4});
}

TEST(CompiledTransforms, Vmap) {
  expect_transformed_as_eager(vmap(energy), {3, 4});
  expect_transformed_as_eager(vmap(vmap(energy)), {2, 3, 4});
  expect_transformed_as_eager(vmap(energy, {.in_dims = {1}}), {3, 4});
}

TEST(CompiledTransforms, PerSampleGradients) {
  expect_transformed_as_eager(vmap(grad(energy)), {3, 4});
  const auto total = [](const at::Tensor& x) { return vmap(energy)(x).sum(); };
  expect_transformed_as_eager(grad(total), {3, 4});
}

TEST(CompiledTransforms, VmapDrawsEagersNumbers) {
  for (const Randomness randomness : {Randomness::Same, Randomness::Different}) {
    const auto noisy = [](const at::Tensor& x) {
      return x * at::rand({4}) + at::dropout(x, 0.5, true);
    };
    expect_transformed_as_eager(vmap(noisy, {.randomness = randomness}), {3, 4});
  }
}

TEST(CompiledTransforms, JacobiansAndHessians) {
  const auto f = [](const at::Tensor& x) { return x.matmul(x).tanh(); };
  expect_transformed_as_eager(jacrev(f), {2, 2});
  expect_transformed_as_eager(jacfwd(f), {2, 2});
  expect_transformed_as_eager(hessian(energy), {4});
  expect_transformed_as_eager(vmap(hessian(energy)), {2, 3});
}

TEST(CompiledTransforms, VjpAndJvp) {
  const auto pulled = [](const at::Tensor& x) { return vjp(energy, x).second(at::full({}, 3.0)); };
  expect_transformed_as_eager(pulled, {4});
  const auto pushed = [](const at::Tensor& x) {
    return jvp(energy, std::tuple(x), std::tuple(x.cos())).second;
  };
  expect_transformed_as_eager(pushed, {4});
}

TEST(CompiledTransforms, Functionalize) {
  const auto writes = [](const at::Tensor& x) {
    const at::Tensor y = x * 1;
    y.view(-1)[0].mul_(3);
    return y.t() + 1;
  };
  expect_transformed_as_eager(functionalize(writes), {2, 2});
  const auto power = [](const at::Tensor& x) { return at::matrix_exp(x); };
  expect_transformed_as_eager(jacfwd(functionalize(power)), {2, 2});
  expect_transformed_as_eager(functionalize(jacrev(writes)), {2, 2});
}

TEST(CompiledTransforms, WritesInsideReachTheArgument) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const auto count = [&](const at::Tensor& x) {
          in[1].add_(1);
          return (x * x).sum();
        };
        return {grad(count)(in[0])};
      },
      [] {
        return Start{.arguments = {leaf({3}), plain({2})}};
      });
}

TEST(CompiledTransforms, OfCompiledFunctions) {
  const auto compiled = compile(energy);
  const at::Tensor x = at::rand({3, 4});
  EXPECT_TRUE(at::equal(vmap(compiled)(x), vmap(energy)(x)));
  EXPECT_TRUE(at::equal(grad(compiled)(x), grad(energy)(x)));
  EXPECT_TRUE(at::equal(hessian(compiled)(x[0]), hessian(energy)(x[0])));
  EXPECT_TRUE(at::equal(vmap(grad(compiled))(x), vmap(grad(energy))(x)));
  EXPECT_EQ(compiled.report().eager_calls, 4U);
  const auto strict = compile(energy, {.policy = Policy::Refuse});
  EXPECT_THROW(vmap(strict)(x), c10::Error);
  const auto of_compiled = compile(vmap(grad(compiled)));
  EXPECT_TRUE(at::equal(of_compiled(x), vmap(grad(energy))(x)));
  EXPECT_EQ(of_compiled.report().eager_calls, 0U);
}

}  // namespace
}  // namespace foregrad::testing
