// `make bench`: compile times, call times and gradients, then short tables. Takes Google
// Benchmark's options.
#include <foregrad/compile.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include "call_bench.h"
#include "compile_bench.h"
#include "gradient_bench.h"
#include "medians.h"
#include "workloads.h"

namespace {

using namespace foregrad::bench;  // NOLINT(google-build-using-namespace): this program is nothing
                                  // else

/// The first compilation of a process also fills what is kept by operator.
double first_compilation_ms() {
  const LayerChain chain{10};
  const LayerChainInputs inputs;
  const auto start = std::chrono::steady_clock::now();
  foregrad::compile(chain)(inputs.x, inputs.weights, inputs.biases);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

int main(int argc, char** argv) {
  // Repetitions take turns, so that a busy moment of the machine falls on all of them.
  char interleaved[] = "--benchmark_enable_random_interleaving=true";
  std::vector<char*> options(argv, argv + argc);
  options.insert(options.begin() + 1, interleaved);
  int option_count = static_cast<int>(options.size());
  benchmark::Initialize(&option_count, options.data());
  if (benchmark::ReportUnrecognizedArguments(option_count, options.data())) return 2;

  const double first_ms = first_compilation_ms();
  register_compile_benchmarks();
  register_call_benchmarks();
  register_gradient_benchmarks();
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  if (medians.has_failed()) return 1;
  print_compile_table(medians);
  std::printf("The first compilation in the process, of 10 operators, took %.2f ms of wall time.\n",
              first_ms);
  print_call_table(medians);
  print_gradient_table(medians);
  return 0;
}
