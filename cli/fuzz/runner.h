// Runs a program eagerly and compiled from equal states.
#pragma once

#include <foregrad/report.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/fuzz/comparison.h"
#include "cli/fuzz/program.h"

namespace foregrad::cli::fuzz {

using Function = std::function<Tensors(const Tensors&)>;

/// A function that a compiler made, and what it says about its calls so far.
struct CompiledFunction {
  Function call;
  std::function<Report()> report;
};

/// Makes a compiled function. Tests put wrong ones here.
using Compiler = std::function<CompiledFunction(Function)>;

/// Makes compiled functions by `foregrad::compile`.
CompiledFunction compile_by_foregrad(Function function);

/// How a program ended.
struct Verdict {
  /// At most one: the first.
  std::optional<Difference> difference;
  /// Why calls ran eagerly, each reason once; empty if all were compiled.
  std::vector<std::string> refusals;
  /// Eager itself threw in the function or in a backward pass, in at least one call.
  bool eager_threw = false;
};

/// Calls the function three times: twice with equal aliasing and other data, then with other
/// aliasing. After each step of the caller compares all that it can see.
Verdict run_program(const Program& program, const Compiler& compiler);

/// Tells whether a program differs in this kind. False for one whose own inputs cannot be made.
bool shows(const Program& program, const std::string& kind, const Compiler& compiler);

}  // namespace foregrad::cli::fuzz
