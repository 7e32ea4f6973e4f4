// `foregrad fuzz`.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/failure.h"

namespace foregrad::cli {

/// Adds the command to the application. When the command line names it, `result` becomes its exit
/// code: `kMismatch` if a program differs from eager.
void add_fuzz_command(CLI::App& application, ExitCode& result);

}  // namespace foregrad::cli
