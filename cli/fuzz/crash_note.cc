#include "cli/fuzz/crash_note.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iterator>

namespace foregrad::cli::fuzz {
namespace {

// Formatted ahead: a handler may not allocate.
char text[128];
size_t text_size = 0;
uint64_t current_seed = 0;

void write_note(int) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, text_size);
  // The action is the default one again (SA_RESETHAND): the signal comes back when this returns.
}

}  // namespace

CrashNote::CrashNote(uint64_t seed) {
  current_seed = seed;
  begin(0);
  struct sigaction action {};
  action.sa_handler = &write_note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &previous_[i]);
}

CrashNote::~CrashNote() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &previous_[i], nullptr);
}

void CrashNote::begin(uint64_t number) {
  text_size =
      fmt::format_to_n(text, sizeof text,
                       "foregrad: died in a program of the fuzzer: `foregrad fuzz --seed {} "
                       "--print {}` prints it.\n",
                       current_seed, number)
          .size;
}

}  // namespace foregrad::cli::fuzz
