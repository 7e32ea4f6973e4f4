#include "graph/interpreter.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/parser.h"
#include "graph/verifier.h"
#include "support/graph_builder.h"

namespace foregrad {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<at::Tensor> run(std::string_view text, const std::vector<at::Tensor>& inputs,
                            const std::vector<at::Generator>& generators = {}) {
  const Graph graph = parse_graph(text, generators);
  verify(graph, "test");
  return interpret(graph, inputs);
}

at::Tensor ramp(std::initializer_list<int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::linspace(-1, 2, count, at::kFloat).reshape(sizes);
}

TEST(Interpreter, RunsNodesInOrder) {
  const at::Tensor x = ramp({2, 3}), y = ramp({2, 3}).mul(3);
  const auto outputs = run(R"(graph {
  input %0: f32[2,3]{3,1} = user(0)
  input %1: f32[2,3]{3,1} = user(1)
  %2: f32[2,3]{3,1} = aten::mul.Tensor(%0, %1)
  %3: f32[2,3]{3,1} = aten::add.Tensor(%2, wrapped(f64 0.5), alpha=2)
  %4: f32[2]{1} = aten::sum.dim_IntList(%3, dim=[1])
  output %4 = output(0)
  output undefined = grad(0)
  output %1 = mutated(1)
})",
                           {x, y});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_TRUE(at::equal(outputs[0], x.mul(y).add(1.0).sum(1)));
  EXPECT_FALSE(outputs[1].defined());
  EXPECT_TRUE(outputs[2].is_same(y));
}

TEST(Interpreter, TakesSeveralResults) {
  const at::Tensor x = ramp({2, 3});
  const auto outputs = run(R"(graph {
  input %0: f32[2,3]{3,1} = user(0)
  %1: f32[2]{1}, %2: i64[2]{1} = aten::max.dim(%0, dim=1)
  undefined, %3: i64[2]{1} = aten::min.dim(%0, dim=1)
  output %1 = output(0)
  output %2 = output(1)
  output %3 = output(2)
})",
                           {x});
  EXPECT_TRUE(at::equal(outputs[0], std::get<0>(x.max(1))));
  EXPECT_TRUE(at::equal(outputs[1], std::get<1>(x.max(1))));
  EXPECT_TRUE(at::equal(outputs[2], std::get<1>(x.min(1))));
}

TEST(Interpreter, TakesAndGivesLists) {
  const at::Tensor x = ramp({3, 2});
  const auto outputs = run(R"(graph {
  input %0: f32[3,2]{2,1} = user(0)
  [%1: f32[1,2]{2,1}, undefined, %2: f32[1,2]{2,1}+4] = aten::split.Tensor(%0, split_size=1)
  %3: f32[3,2]{2,1} = aten::cat([%2, %1, %2])
  output %3 = output(0)
})",
                           {x});
  EXPECT_TRUE(at::equal(outputs[0], at::cat({x[2], x[0], x[2]}).reshape({3, 2})));
}

TEST(Interpreter, ListsMayHaveAbsentEntries) {
  const at::Tensor x = ramp({2, 3}), places = at::tensor({2, 0}, at::kLong);
  const auto outputs = run(R"(graph {
  input %0: f32[2,3]{3,1} = user(0)
  input %1: i64[2]{1} = user(1)
  %2: f32[2,2]{2,1} = aten::index.Tensor(%0, [none, %1])
  output %2 = output(0)
})",
                           {x, places});
  EXPECT_TRUE(at::equal(outputs[0], at::index_select(x, 1, places)));
}

TEST(Interpreter, PassesOptionalAndUndefinedTensors) {
  const at::Tensor x = ramp({1, 2, 4, 4}), weight = ramp({3, 2, 3, 3});
  const auto outputs = run(R"(graph {
  input %0: f32[1,2,4,4]{32,16,4,1} = user(0)
  input %1: f32[3,2,3,3]{18,9,3,1} = lifted(1)
  %2: f32[1,3,2,2]{12,4,2,1} = aten::convolution(%0, %1, bias=none, stride=[1, 1], padding=[0, 0], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1)
  output %2 = output(0)
})",
                           {x, weight});
  EXPECT_TRUE(at::equal(outputs[0], at::conv2d(x, weight)));
}

TEST(Interpreter, ResultsMayBeUndefined) {
  const at::Tensor grad = ramp({1, 3, 2, 2}), x = ramp({1, 2, 4, 4}), weight = ramp({3, 2, 3, 3});
  const auto outputs = run(R"(graph {
  input %0: f32[1,3,2,2]{12,4,2,1} = tangent(output(0))
  input %1: f32[1,2,4,4]{32,16,4,1} = user(0)
  input %2: f32[3,2,3,3]{18,9,3,1} = user(1)
  undefined, %3: f32[3,2,3,3]{18,9,3,1}, undefined = aten::convolution_backward(%0, %1, %2, bias_sizes=none, stride=[1, 1], padding=[0, 0], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1, output_mask=[false, true, false])
  output %3 = grad(1)
})",
                           {grad, x, weight});
  const auto expected =
      at::convolution_backward(grad, x, weight, at::OptionalIntArrayRef(), {1, 1}, {0, 0}, {1, 1},
                               false, {0, 0}, 1, {false, true, false});
  EXPECT_TRUE(at::equal(outputs[0], std::get<1>(expected)));
}

TEST(Interpreter, DrawsFromTheGivenGenerators) {
  at::Generator generator = at::detail::createCPUGenerator(7);
  const std::string_view text = R"(graph {
  input %0: f32[64]{1} = user(0)
  %1: f32[64]{1} = aten::bernoulli(%0, generator=generator#0)
  %2: f32[64]{1} = aten::randn.generator(size=[64], generator=generator#0)
  %3: f32[64]{1} = aten::rand_like(%0)
  output %1 = output(0)
  output %2 = output(1)
  output %3 = output(2)
})";
  const at::Tensor half = at::full({64}, 0.5);
  at::manual_seed(3);
  const auto outputs = run(text, {half}, {generator});
  at::Generator again = at::detail::createCPUGenerator(7);
  at::manual_seed(3);
  EXPECT_TRUE(at::equal(outputs[0], at::bernoulli(half, again)));
  EXPECT_TRUE(at::equal(outputs[1], at::randn({64}, again)));
  EXPECT_TRUE(at::equal(outputs[2], at::rand_like(half)));
}

TEST(Interpreter, PassesEveryKindOfLiteral) {
  const at::Tensor x = ramp({2, 2});
  const auto outputs = run(R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  input %8: f32[1,1,2,2]{4,4,2,1} = user(1)
  %1: f64[2,2]{2,1} = aten::_to_copy(%0, dtype=f64)
  %2: f32[2,2]{2,1} = aten::div.Tensor_mode(%0, wrapped(f64 0.5), rounding_mode="floor")
  %3: f32[2]{1} = aten::full(size=[2], fill_value=2.5, dtype=f32, layout=strided, device=cpu)
  %4: c64[2,2]{2,1} = aten::mul.Scalar(%0, other=complex(0.5, -1.0))
  [%5: f32[2,2]{2,1}, %6: f32[2,2]{2,1}] = aten::_foreach_add.ScalarList([%0, %0], scalars=[1, 0.5])
  %7: f32[1,1,4,4]{16,16,4,1} = aten::upsample_nearest2d.vec(%8, output_size=none, scale_factors=[2.0, 2.0])
  output %1 = output(0)
  output %2 = output(1)
  output %3 = output(2)
  output %4 = output(3)
  output %6 = output(4)
  output %7 = output(5)
})",
                           {x, x.reshape({1, 1, 2, 2})});
  EXPECT_TRUE(at::equal(outputs[0], x.to(at::kDouble)));
  EXPECT_TRUE(at::equal(outputs[1], at::div(x, 0.5, "floor")));
  EXPECT_TRUE(at::equal(outputs[2], at::full({2}, 2.5)));
  EXPECT_TRUE(at::equal(outputs[3], at::mul(x, c10::complex<double>(0.5, -1))));
  EXPECT_TRUE(at::equal(outputs[4], x + 0.5));
  EXPECT_TRUE(at::equal(outputs[5],
                        x.repeat_interleave(2, 0).repeat_interleave(2, 1).reshape({1, 1, 4, 4})));
}

TEST(Interpreter, RunsBelowAutograd) {
  const at::Tensor x = ramp({2}).requires_grad_();
  const auto outputs = run(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::sin(%0)
  output %1 = output(0)
})",
                           {x});
  EXPECT_FALSE(outputs[0].requires_grad());
  EXPECT_TRUE(at::sin(x).requires_grad());  // the guard is gone
}

TEST(Interpreter, ChecksItsInputs) {
  const std::string_view text =
      "graph {\n input %0: f32[2]{1} = user(0)\n output %0 = output(0)\n}";
  EXPECT_THAT([&] { run(text, {}); },
              ThrowsMessage<c10::Error>(HasSubstr("expected 1 inputs, got 0")));
  EXPECT_THAT([&] { run(text, {at::ones({3})}); },
              ThrowsMessage<c10::Error>(
                  HasSubstr("input 0 (`user(0)`): expected f32[2]{1}, got f32[3]{1}")));
  EXPECT_THAT([&] { run(text, {at::ones({2}, at::kDouble)}); },
              ThrowsMessage<c10::Error>(HasSubstr("expected f32[2]{1}, got f64[2]{1}")));
  EXPECT_THAT([&] { run(text, {at::Tensor()}); },
              ThrowsMessage<c10::Error>(HasSubstr("got an undefined tensor")));
  EXPECT_NO_THROW(run(text, {at::ones({2, 2}).select(1, 0)}));  // strides are free
}

TEST(Interpreter, ChecksThatResultsAreAsDeclared) {
  EXPECT_THAT([] { run("graph {\n %0: f32[3]{1} = aten::ones(size=[2])\n}", {}); },
              ThrowsMessage<c10::Error>(
                  HasSubstr("`aten::ones`, value %0: expected f32[3]{1}, got f32[2]{1}")));
  EXPECT_THAT([] { run("graph {\n %0: f64[2]{1} = aten::ones(size=[2])\n}", {}); },
              ThrowsMessage<c10::Error>(HasSubstr("expected f64[2]{1}, got f32[2]{1}")));
}

TEST(Interpreter, ThrowsWhatTheOperatorThrowsAndRestoresAutograd) {
  const std::string_view text = R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[3]{1} = user(1)
  %2: f32[3]{1} = aten::add.Tensor(%0, %1)
})";
  EXPECT_THAT(
      [&] {
        run(text, {at::ones({2}), at::ones({3})});
      },
      ThrowsMessage<c10::Error>(HasSubstr("The size of tensor a (2)")));
  EXPECT_TRUE(at::sin(at::ones({2}).requires_grad_()).requires_grad());
}

TEST(Interpreter, ReadingAnUndefinedValueIsAnError) {
  const Graph graph = parse_graph("graph {\n %1: f32[2]{1} = aten::sin(%0)\n}");
  EXPECT_THAT([&] { interpret(graph, {}); },
              ThrowsMessage<c10::Error>(HasSubstr("value %0 is read")));
}

}  // namespace
}  // namespace foregrad
