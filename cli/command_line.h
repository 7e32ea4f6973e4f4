// The command line as a whole: commands, errors, exit codes.
#pragma once

#include <functional>

#include "cli/failure.h"

namespace foregrad::cli {

/// Runs what the arguments say and returns the exit code. Results go to standard output, progress
/// and errors to standard error, errors as one line that begins with `foregrad: error: `. Throws
/// nothing.
ExitCode run_command_line(int argument_count, const char* const* arguments);

/// Calls `action`, makes an error message and an exit code of whatever it throws, and sees that
/// what was printed reached standard output.
ExitCode run_reporting_errors(const std::function<ExitCode()>& action);

}  // namespace foregrad::cli
