#include "cli/fuzz/child.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>

#include "cli/failure.h"

namespace foregrad::cli::fuzz {
namespace {

[[noreturn]] void fail(const char* what) {
  throw Failure(ExitCode::kInternal, fmt::format("{}: {}.", what, std::strerror(errno)));
}

/// Never returns, and runs no destructor: buffers that the parent filled are the parent's.
[[noreturn]] void be_child(int descriptor, const std::function<std::string()>& action) {
  int code = 0;
  at::set_num_threads(1);  // those of the parent are not here, and waiting for them would not end
  try {
    const std::string text = action();
    for (size_t done = 0; done < text.size();) {
      const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
      if (written < 0) _exit(1);
      done += static_cast<size_t>(written);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "foregrad: {}\n", error.what());
    code = 1;
  }
  _exit(code);
}

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

ChildEnd run_in_child(const std::function<std::string()>& action) {
  int ends[2];
  if (pipe(ends) != 0) fail("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) fail("cannot start a process");
  if (child == 0) {
    close(ends[0]);
    be_child(ends[1], action);
  }
  close(ends[1]);
  std::string text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail("cannot wait for a process");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {.text = std::move(text), .death = ""};
  const int code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return {.text = std::nullopt,
          .death = WIFSIGNALED(status) ? fmt::format("signal {} ({})", code, strsignal(code))
                                       : fmt::format("exit code {}", code)};
}

}  // namespace foregrad::cli::fuzz
