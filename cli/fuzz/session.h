// Runs many programs of one seed and counts how they end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cli/fuzz/runner.h"

namespace foregrad::cli::fuzz {

struct SessionOptions {
  uint64_t seed = 1;
  uint64_t first = 0;                // the number of the first program
  std::optional<uint64_t> programs;  // how many; without both limits one session never ends
  std::optional<double> seconds;
};

/// Programs whose first difference is of one kind.
struct DifferenceCount {
  uint64_t count = 0;
  uint64_t program = 0;  // the first of them
  std::string detail;    // of that one
};

/// How the programs ended. Each is counted once: as one that differs, else as refused if eager ran
/// one of its calls for the compiler, else as one that is as eager.
struct Tally {
  uint64_t programs = 0;
  uint64_t as_eager = 0;
  uint64_t refused = 0;
  uint64_t differ = 0;
  uint64_t eager_threw = 0;  // counted above too
  double seconds = 0;
  std::map<std::string, uint64_t> refusals;            // by reason, numbers as `N`
  std::map<std::string, DifferenceCount> differences;  // by kind
};

/// Returns a reason with each number, and each list of numbers, written as `N`: so that equal
/// reasons are equal.
std::string without_numbers(const std::string& reason);

/// Runs programs until a limit is reached, calling `between` before each: what it throws ends the
/// session.
Tally run_session(const SessionOptions& options, const Compiler& compiler,
                  const std::function<void(const Tally&)>& between = {});

}  // namespace foregrad::cli::fuzz
