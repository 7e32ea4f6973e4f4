// Stopping on Ctrl-C between two steps.
#pragma once

#include <csignal>

namespace foregrad::cli {

/// While it lives, the first SIGINT or SIGTERM is noted rather than fatal; the second one ends the
/// process at once. At most one may live at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Throws a `Failure` of kind `kInterrupted` if a signal came.
  void check() const;

 private:
  struct sigaction previous_int_ {};
  struct sigaction previous_term_ {};
};

}  // namespace foregrad::cli
