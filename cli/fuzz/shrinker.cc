#include "cli/fuzz/shrinker.h"

#include <utility>

#include "cli/fuzz/edits.h"

namespace foregrad::cli::fuzz {

Program shrink(Program program, const FindFirst& find_first) {
  for (;;) {
    std::vector<Program> smaller = smaller_programs(program);
    const auto found = find_first(smaller);
    if (!found) return program;
    program = std::move(smaller[*found]);
  }
}

}  // namespace foregrad::cli::fuzz
