#include "cli/train_summary.h"

#include <fmt/format.h>

#include <foregrad/version.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace foregrad::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<double> measured(const std::vector<double>& step_ms, const TrainResult& result) {
  const auto skipped = std::min<size_t>(static_cast<size_t>(result.warm_up_steps), step_ms.size());
  return {step_ms.begin() + static_cast<std::ptrdiff_t>(skipped), step_ms.end()};
}

double median_ms(const TrainRun& run, const TrainResult& result) {
  return median(measured(run.step_ms, result));
}

double mean_ms(const TrainRun& run, const TrainResult& result) {
  const std::vector<double> values = measured(run.step_ms, result);
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

double compile_ms(const Report& report) {
  double sum = 0;
  for (const auto& specialisation : report.specialisations) {
    sum += specialisation.compile_ms;
  }
  return sum;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) {
    list.push_back(number(value));
  }
  return list;
}

std::string row(const char* name, const std::string& eager, const std::string& compiled) {
  return fmt::format("  {:<22}{:>14}{:>14}\n", name, eager, compiled);
}

/// One line for a quantity of both runs; a dash where there is no eager run.
template <typename Value>
std::string row_of(const char* name, const TrainResult& result, const char* format, Value value) {
  return row(name, result.eager ? fmt::format(fmt::runtime(format), value(*result.eager)) : "-",
             fmt::format(fmt::runtime(format), value(result.compiled)));
}

std::string verdict(const TrainResult& result) {
  std::string text;
  if (result.difference) {
    text += fmt::format("  {:<22}{:>28.6g}\n", "max loss difference", result.difference->max_loss);
    text +=
        fmt::format("  {:<22}{:>28.6g}\n", "max parameter diff.", result.difference->max_parameter);
  }
  text += fmt::format("  {:<22}{:>28}\n", "calls that fell back", result.report.eager_calls);
  for (const auto& reason : result.report.fallback_reasons) {
    text += fmt::format("    {}\n", reason);
  }
  const auto bad = std::find_if(result.compiled.losses.begin(), result.compiled.losses.end(),
                                [](double loss) { return !std::isfinite(loss); });
  if (bad != result.compiled.losses.end()) {
    text += fmt::format("The loss is not finite from step {} on: use a smaller `--lr`.\n",
                        bad - result.compiled.losses.begin() + 1);
  }
  if (!result.difference) {
    return text;
  }
  if (result.difference->max_loss != 0 || result.difference->max_parameter != 0) {
    text += "Compiled is NOT the same as eager.\n";
  } else {
    text += fmt::format("Compiled equals eager, bit for bit, at each of {} steps.\n", result.steps);
  }
  return text;
}

}  // namespace

const char* const kTrainJsonHelp =
    R"(Members of the JSON object:
  version, model, seed, steps, warm_up_steps, batch_size, learning_rate, momentum, threads
  same_as_eager        true if max_loss_diff and max_parameter_diff are 0 and eager_calls is 0
  max_loss_diff        largest difference of the two losses of a step
  max_parameter_diff   largest difference of two parameters or buffers after the last step
  eager_ms, compiled_ms            median time of loss forward and backward, after the warm-up
  eager_mean_ms, compiled_mean_ms  the same, mean: contains recompiles and calls that record again
  compile_ms           time of all compiles together
  first_step_ms        the first compiled step, its compile included
  peak_bytes_eager, peak_bytes_compiled  most bytes live at once among those allocated for that network, its gradients,
                       optimizer and loss, arenas included, in any step after the warm-up
  accuracy_eager, accuracy_compiled      on the test pictures, 0 to 1
  eager_calls          calls of the compiled function that fell back to eager; fallback_reasons says why
  specialisations, recompiles, saved_bytes, last_resort_shapes  of the compiled function
  losses_eager, losses_compiled    one a step
  Members of the eager run are null without --compare, as are numbers that are not finite.)";

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Json to_json(const TrainResult& result) {
  const auto& eager = result.eager;
  Json json;
  json["version"] = foregrad::version();
  json["model"] = result.options.learner.model;
  json["seed"] = result.options.learner.seed;
  json["steps"] = result.steps;
  json["warm_up_steps"] = result.warm_up_steps;
  json["batch_size"] = result.options.batch_size;
  json["learning_rate"] = result.options.learner.learning_rate;
  json["momentum"] = result.options.learner.momentum;
  json["threads"] = result.threads;
  json["same_as_eager"] = result.difference ? Json(result.is_as_eager()) : Json(nullptr);
  json["max_loss_diff"] = result.difference ? number(result.difference->max_loss) : Json(nullptr);
  json["max_parameter_diff"] =
      result.difference ? number(result.difference->max_parameter) : Json(nullptr);
  json["eager_ms"] = eager ? number(median_ms(*eager, result)) : Json(nullptr);
  json["compiled_ms"] = median_ms(result.compiled, result);
  json["eager_mean_ms"] = eager ? number(mean_ms(*eager, result)) : Json(nullptr);
  json["compiled_mean_ms"] = mean_ms(result.compiled, result);
  json["compile_ms"] = compile_ms(result.report);
  json["first_step_ms"] =
      result.compiled.step_ms.empty() ? Json(nullptr) : Json(result.compiled.step_ms.front());
  json["peak_bytes_eager"] = eager ? Json(eager->peak_bytes) : Json(nullptr);
  json["peak_bytes_compiled"] = result.compiled.peak_bytes;
  json["accuracy_eager"] = eager ? number(eager->accuracy) : Json(nullptr);
  json["accuracy_compiled"] = result.compiled.accuracy;
  json["eager_calls"] = result.report.eager_calls;
  json["fallback_reasons"] = result.report.fallback_reasons;
  json["specialisations"] = result.report.specialisations.size();
  json["recompiles"] = result.report.recompiles;
  json["saved_bytes"] = Json::array();
  json["last_resort_shapes"] = Json::array();
  for (const auto& specialisation : result.report.specialisations) {
    json["saved_bytes"].push_back(specialisation.saved_bytes);
    json["last_resort_shapes"].push_back(specialisation.last_resort_shapes);
  }
  json["losses_eager"] = eager ? numbers(eager->losses) : Json(nullptr);
  json["losses_compiled"] = numbers(result.compiled.losses);
  return json;
}

std::string to_text(const TrainResult& result) {
  std::string text =
      fmt::format("{} on Fashion-MNIST: {} steps of {}, {} threads\n", result.options.learner.model,
                  result.steps, result.options.batch_size, result.threads);
  text += row("", "eager", "compiled");
  text +=
      row_of("last loss", result, "{:.6f}", [](const TrainRun& run) { return run.losses.back(); });
  text += row_of("test accuracy", result, "{:.2f} %",
                 [](const TrainRun& run) { return 100 * run.accuracy; });
  text += row_of("median step", result, "{:.2f} ms",
                 [&](const TrainRun& run) { return median_ms(run, result); });
  text += row_of("mean step", result, "{:.2f} ms",
                 [&](const TrainRun& run) { return mean_ms(run, result); });
  text += row_of("peak memory", result, "{:.2f} MiB",
                 [](const TrainRun& run) { return static_cast<double>(run.peak_bytes) / 1048576; });
  text += row("compile", "-", fmt::format("{:.1f} ms", compile_ms(result.report)));
  return text + verdict(result);
}

}  // namespace foregrad::cli
