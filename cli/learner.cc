#include "cli/learner.h"

#include <ATen/core/grad_mode.h>
#include <foregrad/compile.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "cli/models.h"

namespace foregrad::cli {
namespace {

constexpr int64_t kEvaluationBatch = 1000;

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double max_difference(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.sizes() == b.sizes(), "the networks differ in shape: ", a.sizes(), " and ",
              b.sizes(), ".");
  if (a.numel() == 0) {
    return 0;
  }
  const at::Tensor a64 = a.to(at::kDouble);
  const at::Tensor b64 = b.to(at::kDouble);
  if (!a64.isnan().equal(b64.isnan())) {
    return std::numeric_limits<double>::infinity();
  }
  const at::Tensor differs = a64.ne(b64).logical_and(a64.isnan().logical_not());
  return differs.any().item<bool>() ? (a64 - b64).abs().masked_select(differs).max().item<double>()
                                    : 0;
}

}  // namespace

Learner::Learner(const LearnerOptions& options)
    : memory_(open_memory_account()), random_(options.seed), learning_rate_(options.learning_rate) {
  const RandomStream::Use use(random_);
  const ChargeTo charge(memory_);
  network_ = make_classifier(options.model, options.seed);
  optimizer_ = std::make_unique<torch::optim::SGD>(
      network_->parameters(),
      torch::optim::SGDOptions(options.learning_rate).momentum(options.momentum));
}

Learner::~Learner() = default;

void Learner::scale_learning_rate(double factor) {
  for (auto& group : optimizer_->param_groups()) group.options().set_lr(learning_rate_ * factor);
}

Learner::Step Learner::step(const LabelledImages& batch) {
  const RandomStream::Use use(random_);
  const ChargeTo charge(memory_);
  optimizer_->zero_grad();
  const auto start = std::chrono::steady_clock::now();
  const at::Tensor loss = loss_(batch.images, batch.labels);
  loss.backward();
  const double ms = ms_since(start);
  optimizer_->step();
  return {.loss = loss.item<double>(), .ms = ms};
}

double Learner::accuracy(const LabelledImages& data) const {
  const at::NoGradGuard no_grad;
  const bool was_training = network_->is_training();
  network_->eval();
  int64_t right = 0;
  for (int64_t start = 0; start < data.count(); start += kEvaluationBatch) {
    const int64_t end = std::min(start + kEvaluationBatch, data.count());
    const at::Tensor guesses = network_->forward(data.images.slice(0, start, end)).argmax(1);
    right += guesses.eq(data.labels.slice(0, start, end)).sum().item<int64_t>();
  }
  network_->train(was_training);
  return static_cast<double>(right) / static_cast<double>(data.count());
}

Learner::Loss Learner::eager_loss() const {
  return [network = network_](const at::Tensor& images, const at::Tensor& labels) {
    return cross_entropy(network->forward(images), labels);
  };
}

EagerLearner::EagerLearner(const LearnerOptions& options) : Learner(options) {
  set_loss(eager_loss());
}

CompiledLearner::CompiledLearner(const LearnerOptions& options) : Learner(options) {
  auto loss = [network = shared_network()](const at::Tensor& images,
                                           const at::Tensor& labels) -> at::Tensor {
    return cross_entropy(network->forward(images), labels);
  };
  CompileOptions compile_options;
  compile_options.modules = {shared_network()};
  using Compiled = decltype(foregrad::compile(loss, compile_options));
  auto compiled = std::make_shared<Compiled>(foregrad::compile(loss, compile_options));
  set_loss([compiled](const at::Tensor& images, const at::Tensor& labels) {
    return (*compiled)(images, labels);
  });
  report_ = [compiled] { return compiled->report(); };
}

double max_difference(const Classifier& a, const Classifier& b) {
  double result = 0;
  const auto compare = [&result](const auto& named_a, const auto& named_b) {
    TORCH_CHECK(named_a.size() == named_b.size(),
                "the networks differ in their number of tensors: ", named_a.size(), " and ",
                named_b.size(), ".");
    for (const auto& item : named_a) {
      result = std::max(result, max_difference(item.value(), named_b[item.key()]));
    }
  };
  compare(a.named_parameters(), b.named_parameters());
  compare(a.named_buffers(), b.named_buffers());
  return result;
}

double difference(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) {
    return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<double>::infinity();
  }
  return a == b ? 0 : std::abs(a - b);
}

}  // namespace foregrad::cli
