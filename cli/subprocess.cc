// The input is a memory file rather than a pipe: the child may read it or not, at any pace, and a
// child that dies early sends us no SIGPIPE. Its two outputs are pipes read together, so neither
// can fill up and stop it.
#include "cli/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cli/atomic_file.h"
#include "cli/failure.h"

extern char** environ;

namespace foregrad::cli {
namespace {

[[noreturn]] void fail(const std::string& program, const std::string& what) {
  throw Failure(ExitCode::kIo, fmt::format("`{}` {}", program, what));
}

[[noreturn]] void fail_missing(const std::string& program, const std::string& package) {
  fail(program,
       fmt::format("is not on PATH. Install the package `{}`, or do without pictures.", package));
}

class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return value_; }
  void reset() {
    if (value_ >= 0) {
      close(std::exchange(value_, -1));
    }
  }

 private:
  int value_;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Pipe make_pipe(const std::string& program) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail(program, fmt::format("cannot be started: {}.", std::strerror(errno)));
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor make_memory_file(const std::string& program, std::string_view contents) {
  Descriptor file(memfd_create("foregrad-input", MFD_CLOEXEC));
  if (file.get() < 0) {
    fail(program, fmt::format("cannot be given its input: {}.", std::strerror(errno)));
  }
  write_all(file.get(), contents, fmt::format("the input of {}", program));
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

pid_t spawn(const std::vector<std::string>& arguments, int input, int output, int errors,
            const std::string& package) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    fail_missing(arguments[0], package);
  }
  if (error != 0) {
    fail(arguments[0], fmt::format("cannot be started: {}.", std::strerror(error)));
  }
  return child;
}

/// Reads what is there; false at the end.
bool read_some(int descriptor, std::string& into) {
  std::array<char, 65536> buffer;
  const ssize_t got = read(descriptor, buffer.data(), buffer.size());
  if (got < 0) {
    return errno == EINTR || errno == EAGAIN;
  }
  into.append(buffer.data(), static_cast<size_t>(got));
  return got > 0;
}

void read_both(Descriptor output, std::string& output_text, Descriptor errors,
               std::string& error_text) {
  while (output.get() >= 0 || errors.get() >= 0) {
    std::array<pollfd, 2> polled{pollfd{output.get(), POLLIN, 0}, pollfd{errors.get(), POLLIN, 0}};
    if (poll(polled.data(), polled.size(), -1) < 0) {
      continue;  // interrupted
    }
    if (polled[0].revents != 0 && !read_some(output.get(), output_text)) {
      output.reset();
    }
    if (polled[1].revents != 0 && !read_some(errors.get(), error_text)) {
      errors.reset();
    }
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::string run_program(const std::vector<std::string>& arguments, std::string_view input,
                        const std::string& package) {
  const std::string& program = arguments.at(0);
  const Descriptor input_file = make_memory_file(program, input);
  Pipe output = make_pipe(program);
  Pipe errors = make_pipe(program);
  const pid_t child =
      spawn(arguments, input_file.get(), output.write.get(), errors.write.get(), package);
  output.write.reset();
  errors.write.reset();
  std::string output_text;
  std::string error_text;
  read_both(std::move(output.read), output_text, std::move(errors.read), error_text);
  const int status = wait_for(child);
  if (WIFSIGNALED(status)) {
    fail(program, fmt::format("was killed by signal {}.", WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != 0) {
    fail(program,
         fmt::format("ended with code {}: {}", WEXITSTATUS(status), error_text.substr(0, 500)));
  }
  return output_text;
}

void check_program_exists(const std::string& program, const std::string& package) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (true) {
    const size_t colon = rest.find(':');
    const auto candidate = std::filesystem::path(rest.substr(0, colon)) / program;
    if (access(candidate.c_str(), X_OK) == 0) {
      return;
    }
    if (colon == std::string_view::npos) {
      fail_missing(program, package);
    }
    rest.remove_prefix(colon + 1);
  }
}

}  // namespace foregrad::cli
