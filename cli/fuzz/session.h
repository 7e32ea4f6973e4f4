// Runs many programs of one seed and counts how they end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/fuzz/runner.h"

namespace foregrad::cli::fuzz {

struct SessionOptions {
  uint64_t seed = 1;
  uint64_t first = 0;                  // the number of the first program
  std::optional<uint64_t> programs{};  // how many; without both limits one session never ends
  std::optional<double> seconds{};
};

/// Programs that end alike.
struct Group {
  uint64_t count = 0;
  std::vector<uint64_t> programs{};  // the first of them, up to 100
  std::string detail{};              // what was said of the first
};
using Groups = std::map<std::string, Group>;

/// Counts `more` in the group of this name.
void add(const std::string& name, const Group& more, Groups& groups);

/// How the programs ended. Each is counted once: as one that differs, else as refused if eager ran
/// one of its calls for the compiler, else as one that is as eager.
struct Tally {
  uint64_t programs = 0;
  uint64_t as_eager = 0;
  uint64_t refused = 0;
  uint64_t differ = 0;
  uint64_t eager_threw = 0;  // counted above too
  double seconds = 0;
  Groups refusals{};     // by reason, without what varies; a program may have several
  Groups differences{};  // by kind
};

/// Returns the beginning of a reason, numbers written as `N` and what stands in backticks as `…`:
/// so that like reasons are equal.
std::string without_details(const std::string& reason);

/// Runs programs until a limit is reached, calling `between` before each: what it throws ends the
/// session.
Tally run_session(const SessionOptions& options, const Compiler& compiler,
                  const std::function<void(const Tally&)>& between = {});

}  // namespace foregrad::cli::fuzz
