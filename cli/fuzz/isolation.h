// Runs programs in processes of their own: one that kills its process is a finding, not the end.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/fuzz/runner.h"
#include "cli/fuzz/session.h"

namespace foregrad::cli::fuzz {

/// Runs one program in a child process. Its death is a difference of kind `process died of …`.
Verdict run_isolated(const Program& program, const Compiler& compiler);

/// Returns the index of the first program that shows a difference of this kind.
std::optional<size_t> find_isolated(const std::vector<Program>& programs, const std::string& kind,
                                    const Compiler& compiler);

/// Does what `run_session` does, some hundred programs to a child process.
Tally run_isolated_session(const SessionOptions& options, const Compiler& compiler,
                           const std::function<void(const Tally&)>& between = {});

}  // namespace foregrad::cli::fuzz
