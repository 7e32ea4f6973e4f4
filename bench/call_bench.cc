#include "call_bench.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <c10/core/GradMode.h>
#include <foregrad/compile.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <cstdio>
#include <string>

#include "workloads.h"

namespace foregrad::bench {

namespace {

constexpr int kElements = 64;
constexpr int kRepetitions = 31;
constexpr double kSecondsARepetition = 0.02;

enum class Part { ForwardWithoutGrad, Forward, ForwardAndBackward };

struct Row {
  Part part;
  const char* name;  // of the benchmark
  const char* text;
};
constexpr std::array kRows = {
    Row{Part::ForwardWithoutGrad, "forward_without_grad", "forward, grad mode off"},
    Row{Part::Forward, "forward", "forward, history kept"},
    Row{Part::ForwardAndBackward, "forward_and_backward", "forward and backward"},
};

std::string name_of(const Row& row, const char* how) { return std::string(row.name) + "/" + how; }

constexpr int kWritten = 4;  // arguments of `sums`

template <class Function>
void call_sums(benchmark::State& state, const Function& function) {
  std::vector<at::Tensor> x;
  for (int i = 0; i < kWritten; ++i) x.push_back(at::rand({kElements}));
  for (auto _ : state) benchmark::DoNotOptimize(function(x));
}

template <class Function>
void call(benchmark::State& state, const Function& function, Part part) {
  const at::Tensor x = at::rand({kElements}).set_requires_grad(true);
  const at::Tensor y = at::rand({kElements}).set_requires_grad(true);
  const at::Tensor tangent = at::ones({kElements});
  const c10::AutoGradMode grad_mode(part != Part::ForwardWithoutGrad);
  for (auto _ : state) {
    at::Tensor result = function(x, y);
    if (part == Part::ForwardAndBackward) {
      benchmark::DoNotOptimize(torch::autograd::grad({result}, {x, y}, {tangent}));
    }
    benchmark::DoNotOptimize(result);
  }
}

}  // namespace

void register_call_benchmarks() {
  const auto compiled = compile(pointwise_rounds, {.policy = Policy::Refuse});
  const auto add_run = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)
        ->Unit(benchmark::kMicrosecond)
        ->MinTime(kSecondsARepetition)
        ->MeasureProcessCPUTime()
        ->Repetitions(kRepetitions)
        ->ReportAggregatesOnly();
  };
  const auto add = [&](const std::string& name, auto function, Part part) {
    add_run(name, [function, part](benchmark::State& state) { call(state, function, part); });
  };
  const auto add_sums = [&](const std::string& name, auto function) {
    add_run(name + "/eager", [function](benchmark::State& state) { call_sums(state, function); });
    add_run(name + "/compiled", [function = compile(function, {.policy = Policy::Refuse})](
                                    benchmark::State& state) { call_sums(state, function); });
  };
  add_sums("sums", sums);
  add_sums("written_sums", written_sums);
  for (const Row& row : kRows) {
    add(name_of(row, "eager"), pointwise_rounds, row.part);
    add(name_of(row, "compiled"), compiled, row.part);
  }
}

void print_call_table(const Medians& medians) {
  std::printf(
      "\nCalling: 21 pointwise operators on %d floats. Microseconds of processor time a call.\n",
      kElements);
  std::printf("%-24s %9s %9s %9s\n", "", "eager", "compiled", "ratio");
  for (const Row& row : kRows) {
    const std::string eager = name_of(row, "eager");
    const std::string compiled = name_of(row, "compiled");
    if (!medians.has(eager) || !medians.has(compiled)) continue;
    std::printf("%-24s %9.2f %9.2f %9.2f\n", row.text, medians.of(eager), medians.of(compiled),
                medians.of(compiled) / medians.of(eager));
  }
  if (!medians.has("sums/compiled") || !medians.has("written_sums/compiled")) return;
  std::printf(
      "\nWriting back: %d sums of %d floats, given as results or written to the arguments.\n",
      kWritten, kElements);
  for (const char* how : {"eager", "compiled"}) {
    const double given = medians.of(std::string("sums/") + how);
    const double written = medians.of(std::string("written_sums/") + how);
    std::printf("%-24s %9.2f given %9.2f written %9.2f more for each that is written\n", how, given,
                written, (written - given) / kWritten);
  }
}

}  // namespace foregrad::bench
