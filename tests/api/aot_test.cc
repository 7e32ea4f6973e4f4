#include "foregrad/aot.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>

#include "graph/interpreter.h"
#include "graph/printer.h"
#include "graph/refusal.h"
#include "support/values.h"

namespace foregrad {
namespace {

using testing::random_leaf;
using Tensors = std::vector<at::Tensor>;

/// Counts what it compiles and runs graphs by the reference interpreter.
struct Counts {
  int forward = 0, backward = 0, inference = 0, partitioned = 0;
  std::string last;

  GraphCompiler compiler(int& count) {
    return [this, &count](const Graph& graph) -> Executable {
      ++count;
      last = print_graph(graph);
      return [graph](Tensors inputs) { return interpret(graph, inputs); };
    };
  }
  Backend backend() {
    return {.forward = compiler(forward),
            .backward = compiler(backward),
            .inference = compiler(inference)};
  }
};

TEST(AotFunction, ItsCompilersAreChosenByUse) {
  Counts counts;
  const auto fn = [](const at::Tensor& x) { return (x.sin() * x).sum(); };
  const auto compiled = aot_function(fn, counts.backend(), {.policy = Policy::Refuse});
  const auto x = random_leaf({4});
  EXPECT_TRUE(at::equal(compiled(x.detach()), fn(x.detach())));
  EXPECT_EQ(counts.inference, 1);
  EXPECT_EQ(counts.forward, 0);
  const auto y = compiled(x);
  EXPECT_EQ(counts.forward, 1);
  EXPECT_EQ(counts.backward, 0) << "backward is compiled when it runs";
  EXPECT_EQ(counts.last.find("overwrites"), std::string::npos) << counts.last;
  y.backward();
  EXPECT_EQ(counts.backward, 1);
  EXPECT_EQ(counts.inference, 1);
  EXPECT_TRUE(at::equal(x.grad(), torch::autograd::grad({fn(x)}, {x})[0]));
}

TEST(AotFunction, BackwardIsCompiledWithForwardIfAskedFor) {
  Counts counts;
  Backend backend = counts.backend();
  backend.has_lazy_backward = false;
  const auto compiled = aot_function([](const at::Tensor& x) { return x.exp(); }, backend);
  compiled(random_leaf({2}));
  EXPECT_EQ(counts.backward, 1);
}

TEST(AotFunction, GradientsOfGradientsGoThroughTheCompilers) {
  Counts counts;
  const auto fn = [](const at::Tensor& x) { return x.pow(3).sum(); };
  const auto compiled = aot_function(fn, counts.backend(), {.policy = Policy::Refuse});
  const auto x = random_leaf({3});
  using torch::autograd::grad;
  const auto second = [&](const auto& call) {
    return grad({grad({call(x)}, {x}, {}, true, true)[0].sum()}, {x})[0];
  };
  EXPECT_TRUE(at::allclose(second(compiled), second(fn)));
  EXPECT_EQ(counts.backward, 2);
}

TEST(AotFunction, APartitionerSavesLess) {
  Backend backend{.partitioner = [](const Graph& joint) {
    std::vector<ValueId> primals;
    for (const GraphInput& input : joint.inputs) {
      if (primal_of(input.role)) primals.push_back(input.value);
    }
    return primals;
  }};
  const auto fn = [](const at::Tensor& x) { return x.sin().exp().tanh(); };
  const auto compiled = aot_function(fn, backend, {.policy = Policy::Refuse});
  const auto x = random_leaf({5});
  const auto y = compiled(x);
  const auto tangent = at::randn({5});
  EXPECT_TRUE(at::equal(torch::autograd::grad({y}, {x}, {tangent})[0],
                        torch::autograd::grad({fn(x)}, {x}, {tangent})[0]));
  const std::string forward = compiled.report().specialisations[0].forward_graph;
  EXPECT_NE(forward.find("saved(%0)"), std::string::npos) << forward;
  EXPECT_EQ(forward.find("saved(%1)"), std::string::npos) << forward;
}

TEST(AotFunction, DecompositionsTakeOperatorsApart) {
  Backend backend;
  backend.decompositions["aten::silu"] = [](std::vector<c10::IValue> arguments) {
    const at::Tensor x = arguments[0].toTensor();
    return std::vector<c10::IValue>{x * at::sigmoid(x)};
  };
  backend.decompositions["aten::sin"] = [](std::vector<c10::IValue> arguments) {
    return std::vector<c10::IValue>{at::sin(arguments[0].toTensor()) * 1};  // itself again
  };
  const auto fn = [](const at::Tensor& x) { return at::silu(x).sin(); };
  const auto compiled = aot_function(fn, backend, {.policy = Policy::Refuse});
  const auto x = random_leaf({5});
  const auto y = compiled(x);
  EXPECT_TRUE(at::allclose(y, fn(x)));
  EXPECT_TRUE(at::allclose(torch::autograd::grad({y.sum()}, {x})[0],
                           torch::autograd::grad({fn(x).sum()}, {x})[0]));
  const std::string graph = compiled.report().specialisations[0].forward_graph;
  EXPECT_EQ(graph.find("aten::silu("), std::string::npos) << graph;
  EXPECT_NE(graph.find("aten::sigmoid"), std::string::npos) << graph;
  EXPECT_NE(graph.find("aten::sin("), std::string::npos) << graph;

  backend.decompositions["aten::exp"] = [](const std::vector<c10::IValue>&) {
    return std::vector<c10::IValue>();
  };
  const auto wrong = aot_function([](const at::Tensor& x) { return x.exp(); }, backend,
                                  {.policy = Policy::Refuse});
  EXPECT_THROW(wrong(x), c10::Error);
}

TEST(AotFunction, MutationsStayInTheInferenceGraphIfAskedFor) {
  Counts counts;
  Backend backend = counts.backend();
  backend.inference = {};
  backend.keeps_mutations = true;
  const auto fn = [](at::Tensor x) { return x.add_(1) * 2; };
  const auto compiled = aot_function(fn, backend, {.policy = Policy::Refuse});
  const auto x = at::zeros({3});
  const auto version = x._version();
  EXPECT_TRUE(at::equal(compiled(x), at::full({3}, 2.0)));
  EXPECT_TRUE(at::equal(x, at::ones({3})));
  EXPECT_EQ(x._version(), version + 1);
  const std::string graph = compiled.report().specialisations[0].forward_graph;
  EXPECT_NE(graph.find("aten::copy_"), std::string::npos) << graph;
  EXPECT_EQ(graph.find("mutated(0)"), std::string::npos) << graph;
}

TEST(AotModule, IsStillAModule) {
  Counts counts;
  torch::nn::Linear linear(3, 2);
  const auto compiled = aot_module(linear, counts.backend(), {.policy = Policy::Refuse});
  const auto x = at::randn({4, 3});
  EXPECT_TRUE(at::equal(compiled(x), linear(x)));
  EXPECT_EQ(compiled->parameters().size(), 2U);
  EXPECT_EQ(counts.forward, 1);
}

TEST(MakeGraph, GivesAllResultsAndWrittenInputs) {
  const Graph graph = make_graph(
      [](at::Tensor x, const at::Tensor& y) -> Tensors {
        x.add_(y);
        return {x.view({-1}), y * x, x};
      },
      at::ones({2, 2}), at::ones({2, 2}));
  EXPECT_EQ(graph.outputs.size(), 4U);
  const auto results = interpret(graph, {at::ones({2, 2}), at::full({2, 2}, 3.0)});
  EXPECT_TRUE(at::equal(results[0], at::full({2, 2}, 4.0)));
  EXPECT_TRUE(at::equal(results[1], at::full({4}, 4.0)));
  EXPECT_TRUE(at::equal(results[2], at::full({2, 2}, 12.0)));
  EXPECT_THROW(make_graph([](const at::Tensor& x) { return x.nonzero(); }, at::ones({2})), Refusal);
}

TEST(MakeGraph, HoldsGradientsThatTheFunctionTakes) {
  const Graph graph = make_graph(
      [](const at::Tensor& x) { return torch::autograd::grad({x.pow(2).sum()}, {x})[0]; },
      random_leaf({3}));
  const auto x = at::arange(3, at::kFloat);
  EXPECT_TRUE(at::equal(interpret(graph, {x})[0], 2 * x));
}

}  // namespace
}  // namespace foregrad
