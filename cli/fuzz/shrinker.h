// Finds a small program that shows what a big one showed.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "cli/fuzz/program.h"

namespace foregrad::cli::fuzz {

/// Returns the index of the first program that still shows what is looked for.
using FindFirst = std::function<std::optional<size_t>(const std::vector<Program>&)>;

/// Makes a program smaller, one part at a time, until no smaller one shows the same. Begins with
/// one that does.
Program shrink(Program program, const FindFirst& find_first);

}  // namespace foregrad::cli::fuzz
