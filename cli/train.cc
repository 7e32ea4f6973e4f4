#include "cli/train.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/batches.h"
#include "cli/counting_allocator.h"
#include "cli/interrupt.h"
#include "cli/progress.h"

namespace foregrad::cli {
namespace {

constexpr int64_t kMostWarmUpSteps = 10;
constexpr int64_t kDefaultEpochs = 2;

/// What both learners get in one turn.
struct Turn {
  LabelledImages batch;
  double learning_rate_factor;
  bool is_first_measured;
};

void take_step(Learner& learner, TrainRun& run, const Turn& turn) {
  if (turn.is_first_measured) learner.reset_peak();
  learner.scale_learning_rate(turn.learning_rate_factor);
  const Learner::Step step = learner.step(turn.batch);
  run.losses.push_back(step.loss);
  run.step_ms.push_back(step.ms);
}

void finish(const Learner& learner, TrainRun& run, const FashionMnist& data) {
  run.peak_bytes = learner.memory().peak_bytes();
  run.accuracy = learner.accuracy(data.test);
}

std::string note_on(const TrainResult& result) {
  const auto last = [](const TrainRun& run) {
    return fmt::format("loss {:.4f}, {:.1f} ms", run.losses.back(), run.step_ms.back());
  };
  if (!result.eager) {
    return last(result.compiled);
  }
  return fmt::format("eager {}; compiled {}", last(*result.eager), last(result.compiled));
}

TrainDifference differences(const TrainRun& a, const TrainRun& b) {
  TrainDifference result;
  for (size_t i = 0; i < a.losses.size(); ++i) {
    result.max_loss = std::max(result.max_loss, difference(a.losses.at(i), b.losses.at(i)));
  }
  return result;
}

void run_steps(Learner* eager, Learner& compiled, Batches& batches, TrainResult& result,
               std::FILE* progress_stream) {
  const InterruptGuard interrupt;
  Progress progress(progress_stream, "step", result.steps);
  for (int64_t i = 0; i < result.steps; ++i) {
    const Turn turn{
        .batch = batches.next(),
        .learning_rate_factor = 1 - static_cast<double>(i) / static_cast<double>(result.steps),
        .is_first_measured = i == result.warm_up_steps};
    if (eager != nullptr && i % 2 == 0) {
      take_step(*eager, *result.eager, turn);
    }
    take_step(compiled, result.compiled, turn);
    if (eager != nullptr && i % 2 != 0) {
      take_step(*eager, *result.eager, turn);
    }
    progress.update(i + 1, note_on(result));
    interrupt.check();
  }
}

}  // namespace

bool TrainResult::is_as_eager() const {
  return report.eager_calls == 0 &&
         (!difference || (difference->max_loss == 0 && difference->max_parameter == 0));
}

TrainResult train(const FashionMnist& data, const TrainOptions& options, std::FILE* progress) {
  install_counting_allocator();
  Batches batches(data.train, options.batch_size, options.learner.seed);
  TrainResult result;
  result.options = options;
  result.steps = options.steps > 0 ? options.steps : kDefaultEpochs * batches.batches_per_epoch();
  result.warm_up_steps = std::min(kMostWarmUpSteps, (result.steps - 1) / 2);
  result.threads = at::get_num_threads();
  std::unique_ptr<EagerLearner> eager;
  if (options.compare) {
    eager = std::make_unique<EagerLearner>(options.learner);
    result.eager.emplace();
  }
  CompiledLearner compiled(options.learner);
  run_steps(eager.get(), compiled, batches, result, progress);
  finish(compiled, result.compiled, data);
  result.report = compiled.report();
  if (eager) {
    finish(*eager, *result.eager, data);
    result.difference = differences(*result.eager, result.compiled);
    result.difference->max_parameter = max_difference(eager->network(), compiled.network());
  }
  return result;
}

}  // namespace foregrad::cli
