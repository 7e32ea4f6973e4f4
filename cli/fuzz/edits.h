// Makes programs smaller, one part at a time.
#pragma once

#include <vector>

#include "cli/fuzz/program.h"

namespace foregrad::cli::fuzz {

/// Returns all programs that lack one part of this one, or have a simpler one: big cuts first.
/// Whether they still run is for the caller to see.
std::vector<Program> smaller_programs(const Program& program);

}  // namespace foregrad::cli::fuzz
