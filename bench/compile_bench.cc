#include "compile_bench.h"

#include <foregrad/compile.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "workloads.h"

namespace foregrad::bench {

namespace {

constexpr std::array<std::int64_t, 3> kOperators = {100, 1'000, 10'000};

std::string name_of(std::int64_t operators) { return "compile/" + std::to_string(operators); }

/// Nodes of the joint graph: the lines of its text that have an operator.
double count_nodes(const std::string& graph) {
  double nodes = 0;
  for (std::size_t at = graph.find("::"); at != std::string::npos; at = graph.find("::", at + 1))
    ++nodes;
  return nodes;
}

/// Compiles anew, by `warm_up`: no forward runs. The stages are the report's, in microseconds of
/// wall time.
void compile_once(benchmark::State& state) {
  const LayerChain chain{state.range(0)};
  const LayerChainInputs inputs;
  const at::Tensor expected = chain(inputs.x, inputs.weights, inputs.biases);
  std::optional<Compiled<LayerChain>> compiled;
  for (auto _ : state) {
    state.PauseTiming();
    compiled.emplace(chain, CompileOptions{.policy = Policy::Refuse});
    state.ResumeTiming();
    compiled->warm_up(inputs.x, inputs.weights, inputs.biases);
    state.PauseTiming();
    const at::Tensor result = (*compiled)(inputs.x, inputs.weights, inputs.biases);
    if (!result.equal(expected)) {
      state.SkipWithError("the compiled function does not give eager's result");
      return;
    }
    const Report report = compiled->report();
    const auto& made = report.specialisations.at(0);
    for (const Report::Stage& stage : made.stages) state.counters[stage.name] = stage.ms * 1e3;
    state.counters["nodes"] = count_nodes(made.joint_graph);
    state.ResumeTiming();
  }
}

}  // namespace

void register_compile_benchmarks() {
  for (const std::int64_t operators : kOperators) {
    benchmark::RegisterBenchmark("compile", compile_once)
        ->Arg(operators)
        ->Iterations(1)
        ->MeasureProcessCPUTime()
        ->Unit(benchmark::kMillisecond)
        ->Repetitions(operators < 10'000 ? 21 : 7)
        ->ReportAggregatesOnly();
  }
}

void print_compile_table(const Medians& medians) {
  constexpr std::array kStages = {"record",    "analysis",     "joint", "passes",
                                  "partition", "final passes", "plan"};
  std::printf(
      "\nTracing and compiling, forward and backward, all passes, without a call. Processor time; "
      "the "
      "stages, in\nmicroseconds an operator of the function, are wall time.\n");
  std::printf("%9s %7s %8s %6s %8s |", "operators", "nodes", "ms", "us/op", "us/node");
  for (const char* stage : kStages) std::printf(" %s", stage);
  std::printf("\n");
  for (const std::int64_t operators : kOperators) {
    const std::string name = name_of(operators);
    if (!medians.has(name)) continue;
    const double us = medians.of(name);
    const double nodes = medians.of(name, "nodes");
    const auto count = static_cast<double>(operators);
    std::printf("%9.0f %7.0f %8.2f %6.2f %8.2f |", count, nodes, us / 1e3, us / count, us / nodes);
    for (const char* stage : kStages) {
      std::printf(" %*.2f", static_cast<int>(std::strlen(stage)), medians.of(name, stage) / count);
    }
    std::printf("\n");
  }
}

}  // namespace foregrad::bench
