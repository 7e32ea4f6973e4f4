// Training a network on Fashion-MNIST, compiled and, for comparison, eager beside it.
#pragma once

#include <foregrad/report.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/fashion_mnist.h"
#include "cli/learner.h"

namespace foregrad::cli {

struct TrainOptions {
  LearnerOptions learner;
  int64_t steps = 0;  // 0: two epochs
  int64_t batch_size = 128;
  bool compare = false;  // train eagerly too, from the same seed
};

/// What one way of training took and gave.
struct TrainRun {
  std::vector<double> losses;   // one a step
  std::vector<double> step_ms;  // forward and backward, one a step
  int64_t peak_bytes = 0;  // most bytes live at once on its account, in any step after the warm-up
  double accuracy = 0;     // on the test pictures, in evaluation mode, 0 to 1
};

/// What the two ways differ in; infinite where one is NaN and the other is not.
struct TrainDifference {
  double max_loss = 0;
  double max_parameter = 0;  // parameters and buffers after the last step
};

struct TrainResult {
  TrainOptions options;
  int64_t steps = 0;
  int64_t warm_up_steps = 0;  // left out of medians and peaks
  int threads = 0;
  TrainRun compiled;
  Report report;
  std::optional<TrainRun> eager;
  std::optional<TrainDifference> difference;

  /// Tells whether compiled equals eager in every loss and parameter (if compared) and no call fell
  /// back.
  bool is_as_eager() const;
};

/// Trains, the learning rate falling linearly towards 0. The two ways take turns step by step, and
/// turns in who goes first, so that what else the machine does hits both. Progress goes to
/// `progress`. Ctrl-C throws a `Failure` of kind `kInterrupted`. Installs the counting allocator.
TrainResult train(const FashionMnist& data, const TrainOptions& options, std::FILE* progress);

}  // namespace foregrad::cli
