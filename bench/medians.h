// What the repetitions gave: a line each while they run, kept for the tables at the end.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace foregrad::bench {

/// Keeps the median of each benchmark's processor time and counters over its repetitions. Processor
/// time, of all threads: what is measured neither sleeps nor runs in parallel, and other programs
/// on the machine change it little.
class Medians final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override {
    std::printf("%d CPUs\n", context.cpu_info.num_cpus);
    return true;
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const std::string name =
          run.run_name.function_name + (run.run_name.args.empty() ? "" : "/" + run.run_name.args);
      if (run.error_occurred) {
        has_failed_ = true;
        std::printf("%-32s failed: %s\n", name.c_str(), run.error_message.c_str());
      } else if (run.run_type == Run::RT_Aggregate && run.aggregate_name == "median") {
        keep(name, run);
      }
    }
  }

  bool has(const std::string& benchmark) const { return medians_.contains(benchmark); }
  bool has_failed() const { return has_failed_; }
  /// Returns a benchmark's median processor time in microseconds, or the median of a counter.
  double of(const std::string& benchmark, const std::string& counter = "us") const {
    return medians_.at(benchmark).at(counter);
  }

 private:
  void keep(const std::string& name, const Run& run) {
    auto& counters = medians_[name];
    counters["us"] =
        run.GetAdjustedCPUTime() * 1e6 / benchmark::GetTimeUnitMultiplier(run.time_unit);
    for (const auto& [counter, value] : run.counters) counters[counter] = value.value;
    std::printf("%-32s %12.2f us, median of %lld\n", name.c_str(), counters["us"],
                static_cast<long long>(run.repetitions));
    std::fflush(stdout);
  }

  std::map<std::string, std::map<std::string, double>> medians_;
  bool has_failed_ = false;
};

}  // namespace foregrad::bench
