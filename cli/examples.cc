#include "cli/examples.h"

#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <foregrad/compile.h>
#include <torch/nn/modules/batchnorm.h>

#include <memory>

#include "cli/failure.h"
#include "cli/models.h"

namespace foregrad::cli {
namespace {

Report run_pointwise() {
  auto compiled =
      compile([](const at::Tensor& x,
                 const at::Tensor& y) -> at::Tensor { return (x * y.sin() + x.exp()).sum(); },
              CompileOptions{});
  compiled(at::randn({64}).requires_grad_(), at::randn({64}).requires_grad_()).backward();
  return compiled.report();
}

Report run_classifier(const std::string& model) {
  auto network = make_classifier(model, /*seed=*/0);
  CompileOptions options;
  options.modules = {network};
  auto compiled = compile(
      [network](const at::Tensor& images, const at::Tensor& labels) -> at::Tensor {
        return cross_entropy(network->forward(images), labels);
      },
      options);
  compiled(at::randn({8, 1, 28, 28}), at::randint(10, {8}, at::kLong)).backward();
  return compiled.report();
}

Report run_mlp() { return run_classifier("mlp"); }

Report run_cnn() { return run_classifier("cnn"); }

Report run_buffer() {
  auto norm = std::make_shared<torch::nn::BatchNorm1dImpl>(torch::nn::BatchNorm1dOptions(4));
  CompileOptions options;
  options.modules = {norm};
  auto compiled = compile(
      [norm](const at::Tensor& x) -> at::Tensor { return norm->forward(x).square().mean(); },
      options);
  compiled(at::randn({8, 4})).backward();
  return compiled.report();
}

Report run_view() {
  auto compiled =
      compile([](const at::Tensor& x) -> at::Tensor { return x.transpose(0, 1).slice(0, 0, 2); },
              CompileOptions{});
  const at::Tensor x = at::randn({3, 4}).requires_grad_();
  const at::Tensor y = compiled(x);
  y.backward(at::ones(y.sizes()));
  return compiled.report();
}

}  // namespace

const std::vector<Example>& examples() {
  static const std::vector<Example> list{
      {"pointwise", "x * sin(y) + exp(x), summed: what backward reads is saved", run_pointwise},
      {"mlp", "three linear layers and a cross entropy: parameters become inputs", run_mlp},
      {"cnn", "convolutions, batch norm, dropout, pooling: the network of `foregrad train`",
       run_cnn},
      {"buffer", "batch norm in training: running statistics are inputs that are written back",
       run_buffer},
      {"view", "a transposed slice: the output is regenerated as a view of the input", run_view}};
  return list;
}

const Example& find_example(const std::string& name) {
  std::vector<std::string> names;
  for (const Example& example : examples()) {
    if (example.name == name) {
      return example;
    }
    names.push_back(example.name);
  }
  throw Failure(ExitCode::kUsage, fmt::format("`explain`: expected an example from {}, got `{}`.",
                                              fmt::join(names, ", "), name));
}

}  // namespace foregrad::cli
