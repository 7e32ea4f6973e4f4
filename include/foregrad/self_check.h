// Whether the libtorch that the program runs with is one that Foregrad can trace.
#pragma once

#include <string>
#include <vector>

namespace foregrad {

struct SelfCheck {
  bool ok = false;
  std::string libtorch_version;  // of the library in the process, not of the headers
  std::string trace_key;         // the dispatch key that tracing takes for itself
  /// What failed, one line a check: what, expected, got, what to do. Then how many operators can be
  /// traced.
  std::vector<std::string> lines;
};

/// Checks libtorch's version, the dispatch keys that tracing uses, and the trace of a small
/// function against eager. Takes some milliseconds. Throws nothing of its own; may be called at any
/// time and from any thread, and changes nothing in it.
SelfCheck self_check();

}  // namespace foregrad
