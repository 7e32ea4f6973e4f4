// Finds a small program that shows what a big one showed.
#pragma once

#include <functional>
#include <string>

#include "cli/fuzz/program.h"
#include "cli/fuzz/runner.h"

namespace foregrad::cli::fuzz {

/// Runs a program; where it might kill the process, in another one.
using RunProgram = std::function<Verdict(const Program&)>;

/// Returns the smallest program found whose difference is of this kind, beginning with one that
/// has it. Takes at most `max_runs` runs.
Program shrink(Program program, const std::string& kind, const RunProgram& run,
               int max_runs = 3000);

}  // namespace foregrad::cli::fuzz
