// Telling how far a long command is.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace foregrad::cli {

/// Shows progress: a bar that redraws itself on a terminal, about twenty plain lines elsewhere.
class Progress {
 public:
  /// Takes the stream to write to, what is counted (`step`), and how many of it there are.
  Progress(std::FILE* stream, std::string unit, int64_t total);

  /// Removes the bar if it is still there, so that an error or an interruption leaves a clean line.
  ~Progress();

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Says that `done` of the total are done, with a note on how it stands.
  void update(int64_t done, const std::string& note);

  /// Removes the bar: what is printed next begins on a clean line.
  void clear();

 private:
  void draw_bar(int64_t done, const std::string& note);

  std::FILE* stream_;
  std::string unit_;
  int64_t total_;
  bool is_terminal_;
  bool bar_is_shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_drawn_{};
};

}  // namespace foregrad::cli
