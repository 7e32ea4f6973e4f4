// Draws random programs.
#pragma once

#include <cstdint>

#include "cli/fuzz/program.h"

namespace foregrad::cli::fuzz {

/// Draws a program; it depends on the seed and the number alone.
Program draw_program(uint64_t seed, uint64_t number);

}  // namespace foregrad::cli::fuzz
