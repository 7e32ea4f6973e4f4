// Whether what tracing takes for granted about libtorch is true of the one in this process.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foregrad {

struct CaptureCheck {
  std::string libtorch_version;       // of the library in the process, not of the headers
  std::string trace_key;              // its name
  size_t operators = 0;               // how many have the trace key's handler
  std::vector<std::string> failures;  // one line a failed check
};

/// Checks the version, the handlers on both keys for every operator, and the trace of a small
/// function against eager. Takes some milliseconds. What runs, runs on a thread of its own: the
/// caller's modes neither matter nor change.
CaptureCheck check_capture();

/// Says what is wrong with running on libtorch `running` after building against `built`; nothing if
/// major and minor version agree. The build has checked that `built` is supported.
std::optional<std::string> version_problem(std::string_view running, std::string_view built);

}  // namespace foregrad
