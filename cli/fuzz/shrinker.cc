#include "cli/fuzz/shrinker.h"

#include <exception>
#include <utility>

#include "cli/fuzz/edits.h"

namespace foregrad::cli::fuzz {
namespace {

bool shows(const Program& program, const std::string& kind, const RunProgram& run) {
  try {
    const Verdict verdict = run(program);
    return verdict.difference && verdict.difference->kind == kind;
  } catch (const std::exception&) {  // the caller's own part no longer runs
    return false;
  }
}

}  // namespace

Program shrink(Program program, const std::string& kind, const RunProgram& run, int max_runs) {
  for (bool is_smaller = true; is_smaller && max_runs > 0;) {
    is_smaller = false;
    for (Program& candidate : smaller_programs(program)) {
      if (max_runs-- <= 0) break;
      if (!shows(candidate, kind, run)) continue;
      program = std::move(candidate);
      is_smaller = true;
      break;
    }
  }
  return program;
}

}  // namespace foregrad::cli::fuzz
