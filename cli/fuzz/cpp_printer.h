// Writes a program as C++.
#pragma once

#include <string>

#include "cli/fuzz/program.h"

namespace foregrad::cli::fuzz {

/// Returns a source file of its own that runs the program eagerly and compiled, prints what differs
/// and ends with 1 if something does. `comment` becomes its first lines.
std::string to_cpp(const Program& program, const std::string& comment);

/// Returns only the program's own part: the function, its inputs, what the caller does.
std::string to_cpp_fragment(const Program& program);

}  // namespace foregrad::cli::fuzz
