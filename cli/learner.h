// One network in training, eager or compiled.
#pragma once

#include <ATen/core/Tensor.h>
#include <foregrad/report.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "cli/counting_allocator.h"
#include "cli/fashion_mnist.h"
#include "cli/random_stream.h"

namespace torch::optim {
class SGD;
}

namespace foregrad::cli {

class Classifier;

struct LearnerOptions {
  std::string model = "cnn";
  uint64_t seed = 0;
  double learning_rate = 0.05;
  double momentum = 0.9;
};

/// Trains a network by SGD with momentum. Two learners with equal options, one eager and one
/// compiled, begin with equal parameters and draw equal random numbers, however their steps
/// interleave.
class Learner {
 public:
  /// Computes the loss of a batch.
  using Loss = std::function<at::Tensor(const at::Tensor& images, const at::Tensor& labels)>;

  /// What a step took and gave.
  struct Step {
    double loss = 0;
    double ms = 0;  // loss forward and backward, without the optimizer, which is not compiled
  };

  virtual ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  /// Scales the learning rate of the steps that follow: 1 is the one in the options.
  void scale_learning_rate(double factor);

  /// Trains on one batch.
  Step step(const LabelledImages& batch);

  /// Returns the fraction of pictures that the network classifies rightly in evaluation mode;
  /// training goes on after it.
  double accuracy(const LabelledImages& data) const;

  /// Returns the bytes of parameters, gradients, optimizer state and everything else that this
  /// learner's steps allocated: see counting_allocator.h.
  const MemoryAccount& memory() const { return memory_; }

  /// Forgets the peak of the memory so far.
  void reset_peak() { memory_.reset_peak(); }

  Classifier& network() const { return *network_; }

 protected:
  explicit Learner(const LearnerOptions& options);

  /// Sets what computes the loss; called once, by the constructor of the subclass.
  void set_loss(Loss loss) { loss_ = std::move(loss); }

  /// Returns the loss function that is to be compiled: it captures the network.
  Loss eager_loss() const;

  std::shared_ptr<Classifier> shared_network() const { return network_; }

 private:
  MemoryAccount& memory_;
  RandomStream random_;
  std::shared_ptr<Classifier> network_;
  double learning_rate_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
  Loss loss_;
};

/// Computes its loss as the network was written, operator by operator.
class EagerLearner final : public Learner {
 public:
  explicit EagerLearner(const LearnerOptions& options);
};

/// Computes its loss by a function that `foregrad::compile` made.
class CompiledLearner final : public Learner {
 public:
  explicit CompiledLearner(const LearnerOptions& options);

  Report report() const { return report_(); }

 private:
  std::function<Report()> report_;
};

/// Returns the largest absolute difference between two values of one name in two networks,
/// parameters and buffers: 0 only if all are equal, infinity if one is NaN where the other is not.
double max_difference(const Classifier& a, const Classifier& b);

/// Returns |a - b|: 0 if both are NaN, infinity if one is.
double difference(double a, double b);

}  // namespace foregrad::cli
