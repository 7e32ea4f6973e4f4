// How a command ends when it cannot do what was asked.
#pragma once

#include <stdexcept>
#include <string>

namespace foregrad::cli {

/// The exit codes of every command, as `--help` lists them.
enum class ExitCode : int {
  kOk = 0,
  kMismatch = 1,      // compiled differs from eager, a call fell back, or the self-check failed
  kUsage = 2,         // unknown option or a value out of range
  kData = 3,          // a data set is missing or damaged
  kIo = 4,            // a file or picture cannot be written
  kInternal = 5,      // a fault of foregrad or of libtorch
  kInterrupted = 130  // stopped by Ctrl-C
};

/// Ends the command: the message says where, what was expected, what came and what to do.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

}  // namespace foregrad::cli
