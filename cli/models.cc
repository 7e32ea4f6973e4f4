#include "cli/models.h"

#include <ATen/Context.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include "cli/failure.h"

namespace foregrad::cli {
namespace {

namespace nn = torch::nn;

class Mlp final : public Classifier {
 public:
  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = at::flatten(images, 1);
    x = at::relu(first_(x));
    x = at::relu(second_(x));
    return last_(x);
  }

 private:
  nn::Linear first_ = register_module("first", nn::Linear(784, 256));
  nn::Linear second_ = register_module("second", nn::Linear(256, 128));
  nn::Linear last_ = register_module("last", nn::Linear(128, 10));
};

class Cnn final : public Classifier {
 public:
  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = at::max_pool2d(at::relu(norm1_(conv1_(images))), 2);
    x = at::max_pool2d(at::relu(norm2_(conv2_(x))), 2);
    x = dropout1_(at::flatten(x, 1));
    x = dropout2_(at::relu(hidden_(x)));
    return last_(x);
  }

 private:
  nn::Conv2d conv1_ = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)));
  nn::BatchNorm2d norm1_ = register_module("norm1", nn::BatchNorm2d(16));
  nn::Conv2d conv2_ = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)));
  nn::BatchNorm2d norm2_ = register_module("norm2", nn::BatchNorm2d(32));
  nn::Dropout dropout1_ = register_module("dropout1", nn::Dropout(0.25));
  nn::Linear hidden_ = register_module("hidden", nn::Linear(32 * 7 * 7, 128));
  nn::Dropout dropout2_ = register_module("dropout2", nn::Dropout(0.25));
  nn::Linear last_ = register_module("last", nn::Linear(128, 10));
};

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names{"mlp", "cnn"};
  return names;
}

std::shared_ptr<Classifier> make_classifier(const std::string& name, uint64_t seed) {
  at::manual_seed(seed);
  if (name == "mlp") {
    return std::make_shared<Mlp>();
  }
  if (name == "cnn") {
    return std::make_shared<Cnn>();
  }
  throw Failure(ExitCode::kUsage, fmt::format("`--model`: expected one of {}, got `{}`.",
                                              fmt::join(model_names(), ", "), name));
}

at::Tensor cross_entropy(const at::Tensor& scores, const at::Tensor& labels) {
  return at::nll_loss(at::log_softmax(scores, 1), labels);
}

}  // namespace foregrad::cli
