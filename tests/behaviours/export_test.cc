// Graphs that stand by themselves
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include "foregrad/aot.h"
#include "graph/interpreter.h"
#include "graph/refusal.h"

namespace foregrad::testing {
namespace {

using Tensors = std::vector<at::Tensor>;
using Outputs = std::vector<ExportedOutput>;
using In = ExportedInput::Kind;
using Out = ExportedOutput::Kind;

/// A layer, a train-mode batch norm and a counter.
struct NetImpl : torch::nn::Module {
  torch::nn::Linear linear{3, 2};
  torch::nn::BatchNorm1d norm{2};
  at::Tensor calls;
  NetImpl() {
    register_module("linear", linear);
    register_module("norm", norm);
    calls = register_buffer("calls", at::zeros({}));
  }
  Tensors forward(const at::Tensor& x) {
    calls.add_(1);
    const auto y = norm(linear(x));
    return {y.pow(2).mean(), y.detach()};
  }
};
TORCH_MODULE(Net);

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Refusal& refused) {
    return refused.what_without_backtrace();
  }
  return "";
}

void expect_error(const std::function<void()>& act, const std::string& part) {
  const std::string text = refusal(act);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

/// A parameter or buffer; undefined if there is none of that name.
at::Tensor member(const NetImpl& net, const std::string& name) {
  const auto parameters = net.named_parameters();
  const auto buffers = net.named_buffers();
  if (const auto* parameter = parameters.find(name)) return *parameter;
  const auto* buffer = buffers.find(name);
  return buffer ? *buffer : at::Tensor();
}

Tensors inputs_of(const Exported& exported, const NetImpl& net, const at::Tensor& x) {
  Tensors inputs;
  for (const ExportedInput& input : exported.inputs) {
    const at::Tensor named = member(net, input.name);
    inputs.push_back((named.defined() ? named : x).detach().clone());
  }
  return inputs;
}

// A module is exported with its loss and gradients, and its twin without; the signature names
// parameters, buffers, updated buffers, gradients and the loss.
TEST(Behaviours, B156_AModulesForwardLossAndGradients) {
  at::manual_seed(1);
  Net net;
  const auto x = at::randn({5, 3});
  const Exported joint = aot_export_module(net, {.with_gradients = true}, x);
  std::map<std::string, In> kinds;
  for (const ExportedInput& input : joint.inputs) kinds[input.name] = input.kind;
  EXPECT_EQ(kinds.at("argument_0"), In::Argument);
  EXPECT_EQ(kinds.at("linear.weight"), In::Parameter);
  EXPECT_EQ(kinds.at("norm.bias"), In::Parameter);
  EXPECT_EQ(kinds.at("calls"), In::Buffer);
  EXPECT_EQ(kinds.at("norm.running_mean"), In::Buffer);
  const auto has = [&](const Exported& exported, const ExportedOutput& output) {
    return std::ranges::count(exported.outputs, output) == 1;
  };
  for (const char* buffer : {"calls", "norm.running_mean", "norm.running_var"})
    EXPECT_TRUE(has(joint, {Out::Updated, buffer})) << buffer;
  for (const char* parameter : {"linear.weight", "linear.bias", "norm.weight", "norm.bias"})
    EXPECT_TRUE(has(joint, {Out::Gradient, parameter})) << parameter;
  EXPECT_TRUE(has(joint, {Out::Loss, "result_0"}));
  EXPECT_TRUE(has(joint, {Out::Result, "result_1"}));

  const Tensors results = interpret(joint.graph, inputs_of(joint, *net, x));
  const Exported twin = aot_export_module(net, {}, x);
  const Tensors twins = interpret(twin.graph, inputs_of(twin, *net, x));
  EXPECT_FALSE(std::ranges::any_of(twin.outputs, [](const ExportedOutput& output) {
    return output.kind == Out::Gradient || output.kind == Out::Loss;
  }));
  const Tensors eager = net->forward(x);
  eager[0].backward();
  for (size_t i = 0; i < joint.outputs.size(); ++i) {
    const ExportedOutput& output = joint.outputs[i];
    at::Tensor expected;
    if (output.kind == Out::Gradient) expected = member(*net, output.name).grad();
    if (output.kind == Out::Updated) expected = member(*net, output.name);
    if (output.kind == Out::Loss) expected = eager[0];
    if (output.kind == Out::Result) expected = eager[1];
    EXPECT_TRUE(at::allclose(results[i], expected)) << output.name;
    const auto same = std::ranges::find(twin.outputs, output.name, &ExportedOutput::name);
    if (output.kind == Out::Gradient) continue;
    EXPECT_TRUE(at::allclose(twins[static_cast<size_t>(same - twin.outputs.begin())], expected));
  }
  EXPECT_NE(to_text(joint).find("output gradient linear.weight"), std::string::npos);
}

// A function is exported as one graph that takes the tangents of its results.
TEST(Behaviours, B156_AFunctionsJointGraphTakesTangents) {
  const auto x = at::randn({3}).requires_grad_();
  const Exported joint = aot_export_joint([](const at::Tensor& x) { return x.exp(); }, x);
  ASSERT_EQ(joint.inputs.size(), 2U);
  EXPECT_EQ(joint.inputs[1], (ExportedInput{In::Tangent, "output(0)"}));
  EXPECT_EQ(joint.outputs, (Outputs{{Out::Result, "result_0"}, {Out::Gradient, "argument_0"}}));
  const auto results = interpret(joint.graph, {x.detach(), at::full({3}, 2.0)});
  EXPECT_TRUE(at::equal(results[1], 2 * x.detach().exp()));
}

// An input whose sizes or strides the function changes can't be exported.
TEST(Behaviours, B157_AnInputThatGetsOtherSizesIsRefused) {
  expect_error(
      [] {
        aot_export_joint([](at::Tensor x) { return x.t_() * 2; }, at::ones({2, 3}));
      },
      "argument_0 gets other sizes");
}

struct WritingImpl : torch::nn::Module {
  at::Tensor buffer, weight;
  bool writes_weight = false;
  WritingImpl() {
    buffer = register_buffer("buffer", at::zeros({2}));
    weight = register_parameter("weight", at::ones({2}));
  }
  at::Tensor forward(at::Tensor x) {
    buffer.add_(1);
    x.add_(1);
    if (writes_weight) {
      const at::NoGradGuard no_grad;
      weight.mul_(2);
    }
    return (x * weight).sum();
  }
};
TORCH_MODULE(Writing);

// Writes to an argument and to a buffer are both in the signature.
TEST(Behaviours, B158_WritesToAnArgumentAndToABufferAreBothTold) {
  const Exported exported = aot_export_module(Writing(), {.with_gradients = true}, at::zeros({2}));
  EXPECT_EQ(exported.outputs, (Outputs{{Out::Updated, "argument_0"},
                                       {Out::Updated, "buffer"},
                                       {Out::Loss, "result_0"},
                                       {Out::Gradient, "weight"}}));
}

// Without gradients an input that requires grad may be written.
TEST(Behaviours, B159_InferenceMayWriteAnInputThatRequiresGrad) {
  const Exported exported = aot_export_module(Writing(), {}, at::zeros({2}).requires_grad_());
  EXPECT_EQ(exported.outputs[0], (ExportedOutput{Out::Updated, "argument_0"}));
}

// A parameter may be written only where no gradients are exported.
TEST(Behaviours, B160_AParameterMayBeWrittenWithoutGradientsOnly) {
  Writing net;
  net->writes_weight = true;
  expect_error([&] { aot_export_module(net, {.with_gradients = true}, at::zeros({2})); },
               "weight requires grad and is written");
  const Exported exported = aot_export_module(net, {}, at::zeros({2}));
  EXPECT_EQ(std::ranges::count(exported.outputs, ExportedOutput{Out::Updated, "weight"}), 1);
}

// A written input that is passed twice, or that shares memory with another, can't be exported.
TEST(Behaviours, B161_AWrittenInputThatIsPassedTwiceIsRefused) {
  const auto fn = [](at::Tensor x, const at::Tensor& y) { return x.add_(1) + y * 1; };
  const auto x = at::ones({4});
  expect_error([&] { aot_export_joint(fn, x, x); }, "argument_0 is passed twice and written");
  expect_error([&] { aot_export_joint(fn, x.slice(0, 0, 3), x.slice(0, 1, 4)); },
               "shares memory with another input and is written");
}

struct TwoLossesImpl : torch::nn::Module {
  at::Tensor weight = register_parameter("weight", at::ones({2}));
  Tensors forward(const at::Tensor& x) { return {(x * weight).sum(), x + weight}; }
};
TORCH_MODULE(TwoLosses);

// Only the loss may require grad.
TEST(Behaviours, B162_OnlyTheLossMayRequireGrad) {
  expect_error([] { aot_export_module(TwoLosses(), {.with_gradients = true}, at::ones({2})); },
               "result 1 requires grad and is not the loss");
  expect_error(
      [] { aot_export_module(TwoLosses(), {.with_gradients = true, .loss = 1}, at::ones({2})); },
      "result 1, the loss, is `f32[2]{1}`");
  expect_error(
      [] { aot_export_module(Writing(), {.with_gradients = true, .loss = 3}, at::ones({2})); },
      "the loss is to be result 3 of 1");
}

// A function that draws from a generator of its own can't be exported.
TEST(Behaviours, B163_AGeneratorOfItsOwnIsRefused) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
  expect_error(
      [&] {
        aot_export_joint([&](const at::Tensor& x) { return x * at::rand({2}, generator); },
                         at::ones({2}));
      },
      "draws from a generator of its own");
}

// Nor can one that captures tensors, or that returns what shares memory.
TEST(Behaviours, B163_CapturedTensorsAndAliasesAreRefused) {
  const auto w = at::ones({2});
  expect_error([&] { aot_export_joint([&](const at::Tensor& x) { return x * w; }, at::ones({2})); },
               "is captured");
  expect_error(
      [] {
        aot_export_joint([](const at::Tensor& x) { return x.view({2, 1}); }, at::ones({2}));
      },
      "result 0 is an input, or shares memory");
}

}  // namespace
}  // namespace foregrad::testing
