// `foregrad doctor`.
#pragma once

#include <foregrad/self_check.h>

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/failure.h"

namespace foregrad::cli {

/// Returns those of the vector and matrix extensions that kernels may use which the text of
/// /proc/cpuinfo lists.
std::vector<std::string> cpu_features(std::string_view cpuinfo);

/// Returns the processor's name in the text of /proc/cpuinfo, or `unknown`.
std::string cpu_name(std::string_view cpuinfo);

/// Prints the outcome and returns `kOk`, or `kMismatch` if the check failed.
ExitCode print_self_check(const SelfCheck& check);

/// Adds the command to the application. When the command line names it, `result` becomes its exit
/// code: `kMismatch` if the self-check fails.
void add_doctor_command(CLI::App& application, ExitCode& result);

}  // namespace foregrad::cli
