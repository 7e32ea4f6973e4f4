#include "foregrad/transforms.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "foregrad/jacobian.h"
#include "support/values.h"

namespace foregrad {
namespace {

using testing::expect_values;
using testing::floats;
using ::testing::HasSubstr;

at::Tensor dot(const at::Tensor& a, const at::Tensor& b) { return (a * b).sum(); }

template <class Act>
std::string error_of(const Act& act) {
  try {
    act();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "no error";
}

TEST(Transforms, VmapCallsForEachElement) {
  const at::Tensor a = at::randn({4, 3});
  const at::Tensor b = at::randn({4, 3});
  EXPECT_TRUE(at::allclose(vmap(dot)(a, b), (a * b).sum(1)));
  const auto by_column = vmap(dot, {.in_dims = {1, std::nullopt}});
  EXPECT_TRUE(at::allclose(by_column(a, at::ones({4})), a.sum(0)));
  const auto twice =
      vmap(vmap(dot, {.in_dims = {0, std::nullopt}}), {.in_dims = {std::nullopt, 0}});
  EXPECT_TRUE(at::allclose(twice(a, b), b.matmul(a.t())));
}

TEST(Transforms, VmapPutsTheBatchWhereItIsAskedFor) {
  const at::Tensor x = at::randn({5, 2, 3});
  const auto f = [](const at::Tensor& t) { return std::pair(t.sin(), at::ones({2})); };
  const auto [sines, ones] = vmap(f, {.out_dim = -1})(x);
  EXPECT_TRUE(at::equal(sines, x.sin().movedim(0, -1)));
  EXPECT_EQ(ones.sizes(), at::IntArrayRef({2, 5}));
}

TEST(Transforms, VmapGoesInChunks) {
  int calls = 0;
  const auto f = [&](const at::Tensor& t) {
    ++calls;
    return t.cumsum(0);
  };
  const at::Tensor x = at::randn({7, 3});
  EXPECT_TRUE(at::equal(vmap(f, {.chunk_size = 3})(x), x.cumsum(1)));
  EXPECT_EQ(calls, 3);
}

TEST(Transforms, VmapDrawsNumbersAsItIsTold) {
  const auto noisy = [](const at::Tensor& t) { return t + at::rand({}); };
  const at::Tensor x = at::zeros({3});
  EXPECT_THAT(error_of([&] { vmap(noisy)(x); }), HasSubstr("random"));
  const at::Tensor same = vmap(noisy, {.randomness = Randomness::Same})(x);
  EXPECT_TRUE(at::equal(same, same[0].expand({3})));
  const at::Tensor different = vmap(noisy, {.randomness = Randomness::Different})(x);
  EXPECT_FALSE(at::equal(different, different[0].expand({3})));
}

TEST(Transforms, VmapSaysWhatIsNoBatch) {
  const at::Tensor x = at::ones({2, 3});
  EXPECT_THAT(error_of([&] { vmap(dot)(x, at::ones({4, 3})); }), HasSubstr("got sizes 2, 4"));
  EXPECT_THAT(error_of([&] {
                vmap(dot, {.in_dims = {std::nullopt, std::nullopt}})(x, x);
              }),
              HasSubstr("got no tensor that is batched"));
  EXPECT_THAT(error_of([&] { vmap(dot, {.in_dims = {0}})(x, x); }),
              HasSubstr("2 arguments, got 1"));
  EXPECT_THAT(error_of([&] {
                vmap(dot, {.in_dims = {2, 0}})(x, x);
              }),
              HasSubstr("has no dimension 2: its sizes are [2, 3]"));
  const auto with_item = [](const at::Tensor& t) { return t * t.sum().item<double>(); };
  EXPECT_THAT(error_of([&] { vmap(with_item)(x); }), HasSubstr("item"));
}

TEST(Transforms, GradIsOfTheFirstArgumentOrThoseNamed) {
  const at::Tensor a = floats({1, 2});
  const at::Tensor b = floats({3, 4});
  expect_values(grad(dot)(a, b), {3, 4});
  expect_values(grad<1>(dot)(a, b), {1, 2});
  const auto [of_a, of_b] = grad<0, 1>(dot)(a, b);
  expect_values(of_a, {3, 4});
  expect_values(of_b, {1, 2});
  const auto [gradient, value] = grad_and_value(dot)(a, b);
  expect_values(gradient, {3, 4});
  expect_values(value, {11});
  EXPECT_FALSE(value.requires_grad());
}

TEST(Transforms, GradKeepsTheShapeOfItsArgument) {
  using Weights = std::map<std::string, at::Tensor>;
  const auto loss = [](const Weights& w, double scale) {
    return std::pair((w.at("a") * w.at("a")).sum() * scale, w.at("a").detach());
  };
  const Weights w{{"a", floats({1, 2})}, {"n", at::arange(2)}, {"unused", floats({5})}};
  const auto [gradients, result] = grad_and_value(loss)(w, 2.0);
  expect_values(gradients.at("a"), {4, 8});
  EXPECT_FALSE(gradients.at("n").defined());
  expect_values(gradients.at("unused"), {0});
  expect_values(result.second, {1, 2});
}

TEST(Transforms, GradWantsOneNumber) {
  const auto sine = [](const at::Tensor& t) { return t.sin(); };
  EXPECT_THAT(error_of([&] { grad(sine)(at::ones({3})); }), HasSubstr("got Float of sizes [3]"));
  const auto integer = [](const at::Tensor& t) { return t.sum().to(at::kLong); };
  EXPECT_THAT(error_of([&] { grad(integer)(at::ones({3})); }), HasSubstr("got Long of sizes []"));
}

TEST(Transforms, GradNests) {
  const auto cube = [](const at::Tensor& t) { return t * t * t; };
  expect_values(grad(grad(cube))(at::full({}, 2.0)), {12});
  expect_values(vmap(grad(grad(grad(cube))))(floats({1, 2})), {6, 6});
  const auto penalised = [&](const at::Tensor& t) { return grad(cube)(t).square(); };
  expect_values(grad(penalised)(at::full({}, 1.0)), {36});
}

TEST(Transforms, GradModeOutsideDoesNotMatterInside) {
  const auto square = [](const at::Tensor& t) { return t * t; };
  const at::NoGradGuard no_grad;
  expect_values(grad(square)(at::full({}, 3.0)), {6});
  const auto cut = [&](const at::Tensor& t) {
    const at::NoGradGuard inside;
    return t * t;
  };
  expect_values(grad(cut)(at::full({}, 3.0)), {0});
}

TEST(Transforms, VjpPullsBackMoreThanOnce) {
  const at::Tensor a = floats({1, 2});
  const at::Tensor b = floats({3, 4});
  const auto product = [](const at::Tensor& x, const at::Tensor& y) { return x * y; };
  const auto [result, pull_back] = vjp(product, a, b);
  expect_values(result, {3, 8});
  for (int i = 0; i < 2; ++i) {
    const auto [of_a, of_b] = pull_back(floats({1, 10}));
    expect_values(of_a, {3, 40});
    expect_values(of_b, {1, 20});
  }
  const auto pulled = vjp([](const at::Tensor& x) { return x.sin(); }, a);
  EXPECT_TRUE(at::allclose(pulled.second(at::ones({2})), a.cos()));
}

TEST(Transforms, JvpPushesForward) {
  const at::Tensor a = floats({1, 2});
  const at::Tensor b = floats({3, 4});
  const auto [result, change] =
      jvp(dot, std::tuple(a, b), std::tuple(floats({1, 0}), at::Tensor()));
  expect_values(result, {11});
  expect_values(change, {3});
  const auto inner = [&](const at::Tensor& t) {
    return jvp([](const at::Tensor& x) { return x * x * x; }, std::tuple(t),
               std::tuple(at::ones_like(t)))
        .second;
  };
  const auto second = jvp(inner, std::tuple(at::full({}, 2.0)), std::tuple(at::ones({})));
  expect_values(second.second, {12});
  const auto constant = jvp([](const at::Tensor& t) { return at::ones({2}, t.options()); },
                            std::tuple(a), std::tuple(a));
  expect_values(constant.second, {0, 0});
}

TEST(Transforms, JacobiansOfBothModesAgree) {
  const auto f = [](const at::Tensor& t) { return t.matmul(t.t()).sin(); };
  const at::Tensor x = at::randn({2, 3}, at::kDouble);
  const at::Tensor reverse = jacrev(f)(x);
  EXPECT_EQ(reverse.sizes(), at::IntArrayRef({2, 2, 2, 3}));
  EXPECT_TRUE(at::allclose(reverse, jacfwd(f)(x)));
  at::Tensor differences = at::zeros_like(reverse);
  for (int64_t i = 0; i < x.numel(); ++i) {
    at::Tensor moved = x.clone();
    moved.view(-1)[i] += 1e-6;
    differences.view({2, 2, 6}).select(2, i).copy_((f(moved) - f(x)) / 1e-6);
  }
  EXPECT_TRUE(at::allclose(reverse, differences, 1e-4, 1e-4));
}

TEST(Transforms, JacobiansStandWhereTensorsStood) {
  const auto f = [](const at::Tensor& t, const std::vector<at::Tensor>& w) {
    return std::pair(t * w[0], t.sum());
  };
  const at::Tensor x = floats({1, 2});
  const std::vector<at::Tensor> w{floats({3, 4}), floats({5})};
  const auto [of_product, of_sum] = jacrev(f)(x, w);
  expect_values(of_product, {3, 0, 0, 4});
  expect_values(of_sum, {1, 1});
  for (const auto& of_weights : {jacrev<1>(f)(x, w), jacfwd<1>(f)(x, w)}) {
    ASSERT_EQ(of_weights.size(), 2U);
    expect_values(of_weights[0][0], {1, 0, 0, 2});
    EXPECT_EQ(of_weights[0][1].sizes(), at::IntArrayRef({2, 1}));
    expect_values(of_weights[1][0], {0, 0});
  }
}

TEST(Transforms, JacobiansOfNothing) {
  const auto f = [](const at::Tensor& t) { return t.sin(); };
  EXPECT_EQ(jacrev(f)(at::ones({0, 2})).sizes(), at::IntArrayRef({0, 2, 0, 2}));
  EXPECT_EQ(jacfwd(f)(at::ones({0, 2})).sizes(), at::IntArrayRef({0, 2, 0, 2}));
}

TEST(Transforms, HessianIsTheJacobianOfTheGradient) {
  const auto f = [](const at::Tensor& t) { return (t[0] * t[0] * t[1]).sin(); };
  const at::Tensor x = at::tensor({0.5, 0.25}, at::kDouble);
  const at::Tensor all = hessian(f)(x);
  EXPECT_EQ(all.sizes(), at::IntArrayRef({2, 2}));
  EXPECT_TRUE(at::allclose(all, jacrev(jacrev(f))(x)));
  EXPECT_TRUE(at::allclose(all, jacfwd(jacfwd(f))(x)));
  EXPECT_TRUE(at::allclose(all, jacrev(jacfwd(f))(x)));
}

TEST(Transforms, FunctionalizeKeepsWhatIsWritten) {
  const auto f = [](const at::Tensor& t) {
    t.view(-1)[0].mul_(5);
    return t.t() * 2;
  };
  const at::Tensor x = floats({1, 2, 3, 4}).view({2, 2});
  expect_values(functionalize(f)(x), {10, 6, 4, 8});
  expect_values(x, {5, 2, 3, 4});
  const auto itself = [](const at::Tensor& t) { return t.add_(1); };
  const at::Tensor y = floats({1});
  EXPECT_TRUE(functionalize(itself)(y).is_same(y));
}

// The formula for the derivative of `matrix_exp` writes to tensors that it makes.
TEST(Transforms, JacobianOfAFunctionalizedMatrixExponential) {
  const auto f = [](const at::Tensor& t) { return at::matrix_exp(t); };
  const at::Tensor x = at::randn({3, 3}, at::kDouble);
  const at::Tensor expected = jacrev(f)(x);
  EXPECT_TRUE(at::allclose(jacfwd(functionalize(f))(x), expected));
  EXPECT_TRUE(at::allclose(jacrev(functionalize(f))(x), expected));
}

TEST(Transforms, ExceptionsLeaveNoTransformBehind) {
  const auto throws = [](const at::Tensor& t) -> at::Tensor {
    if (t.dim() == 0) throw std::runtime_error("mine");
    return t;
  };
  EXPECT_THROW(vmap(throws)(at::ones({2})), std::runtime_error);
  EXPECT_THROW(grad(throws)(at::ones({})), std::runtime_error);
  EXPECT_THROW(jvp(throws, std::tuple(at::ones({})), std::tuple(at::ones({}))), std::runtime_error);
  EXPECT_THROW(functionalize(throws)(at::ones({})), std::runtime_error);
  expect_values(grad(dot)(floats({1}), floats({2})), {2});
}

}  // namespace
}  // namespace foregrad
