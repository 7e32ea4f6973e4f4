#include "cli/interrupt.h"

#include "cli/failure.h"

namespace foregrad::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void note_signal(int) { interrupted = 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_int_);
  sigaction(SIGTERM, &action, &previous_term_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_int_, nullptr);
  sigaction(SIGTERM, &previous_term_, nullptr);
}

void InterruptGuard::check() const {
  if (interrupted != 0) {
    throw Failure(ExitCode::kInterrupted, "interrupted; nothing was written.");
  }
}

}  // namespace foregrad::cli
