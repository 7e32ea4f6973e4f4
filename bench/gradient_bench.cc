#include "gradient_bench.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <foregrad/compile.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>

#include "workloads.h"

namespace foregrad::bench {

namespace {

constexpr int kElements = 64;
constexpr int kAtoms = 16;
constexpr int kRepetitions = 31;
constexpr double kSecondsARepetition = 0.02;

template <class Run>
void add(const char* name, Run run) {
  benchmark::RegisterBenchmark(name, run)
      ->Unit(benchmark::kMicrosecond)
      ->MinTime(kSecondsARepetition)
      ->MeasureProcessCPUTime()
      ->Repetitions(kRepetitions)
      ->ReportAggregatesOnly();
}

/// Forward, and backward from the last result.
template <class Function>
void call_and_differentiate(benchmark::State& state, const Function& function) {
  const at::Tensor x = at::rand({kElements}).set_requires_grad(true);
  const at::Tensor y = at::rand({kElements}).set_requires_grad(true);
  const at::Tensor tangent = at::ones({kElements});
  for (auto _ : state) {
    const std::vector<at::Tensor> results = function(x, y);
    benchmark::DoNotOptimize(torch::autograd::grad({results.back()}, {x, y}, {tangent}));
  }
}

/// A step of training: loss and gradients with respect to the parameters.
template <class Loss>
void step(benchmark::State& state, const EnergyModel& model, const Loss& loss) {
  const at::Tensor positions = at::rand({kAtoms, 3}).mul(3).set_requires_grad(true);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        torch::autograd::grad({loss(positions, model.weights)}, model.weights));
}

}  // namespace

void register_gradient_benchmarks() {
  const CompileOptions strict{.policy = Policy::Refuse};
  add("one_result/compiled", [function = compile(last_of_chain, strict)](benchmark::State& state) {
    call_and_differentiate(state, function);
  });
  add("two_results/compiled", [function = compile(chain_of_two, strict)](benchmark::State& state) {
    call_and_differentiate(state, function);
  });
  const EnergyModel model;
  add("energy_step/eager",
      [model](benchmark::State& state) { step(state, model, force_matching_loss); });
  add("energy_step/compiled", [model, function = compile(force_matching_loss, strict)](
                                  benchmark::State& state) { step(state, model, function); });
}

void print_gradient_table(const Medians& medians) {
  if (medians.has("two_results/compiled") && medians.has("one_result/compiled")) {
    const double one = medians.of("one_result/compiled");
    const double two = medians.of("two_results/compiled");
    std::printf(
        "\nA result that another is computed from, given too but not looked at: %.2f us of "
        "processor "
        "time a call\nand backward, %.2f without it, %.2f for the boundary.\n",
        two, one, two - one);
  }
  if (!medians.has("energy_step/compiled") || !medians.has("energy_step/eager")) return;
  const double eager = medians.of("energy_step/eager");
  const double compiled = medians.of("energy_step/compiled");
  std::printf(
      "\nA step of an energy model of %d atoms with forces in its loss: eager %.1f us, compiled "
      "%.1f us, ratio %.2f\n",
      kAtoms, eager, compiled, compiled / eager);
}

}  // namespace foregrad::bench
