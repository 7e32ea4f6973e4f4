// Says which program ran when the process died.
#pragma once

#include <csignal>
#include <cstdint>

namespace foregrad::cli::fuzz {

/// While it lives, a signal that kills the process (SIGSEGV, SIGABRT, …) first writes seed and
/// number of the program to standard error. At most one may live at a time.
class CrashNote {
 public:
  explicit CrashNote(uint64_t seed);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

  /// Sets the program that is to be named.
  static void begin(uint64_t number);

 private:
  static constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  struct sigaction previous_[5]{};
};

}  // namespace foregrad::cli::fuzz
