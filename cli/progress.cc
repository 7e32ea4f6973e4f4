#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace foregrad::cli {
namespace {

constexpr int64_t kPlainLines = 20;
constexpr int kBarCells = 30;
constexpr std::chrono::milliseconds kRedrawInterval{100};

size_t terminal_columns(std::FILE* stream) {
  winsize size{};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string seconds_left(std::chrono::steady_clock::duration passed, int64_t done, int64_t total) {
  const double seconds = std::chrono::duration<double>(passed).count();
  const long left =
      std::lround(seconds / static_cast<double>(done) * static_cast<double>(total - done));
  return fmt::format("{}:{:02} left", left / 60, left % 60);
}

}  // namespace

Progress::Progress(std::FILE* stream, std::string unit, int64_t total)
    : stream_(stream),
      unit_(std::move(unit)),
      total_(std::max<int64_t>(total, 1)),
      is_terminal_(isatty(fileno(stream)) == 1) {}

Progress::~Progress() { clear(); }

void Progress::update(int64_t done, const std::string& note) {
  if (is_terminal_) {
    draw_bar(done, note);
    return;
  }
  const int64_t interval = std::max<int64_t>((total_ + kPlainLines - 1) / kPlainLines, 1);
  if (done == 1 || done == total_ || done % interval == 0) {
    fmt::print(stream_, "{} {}/{}: {}\n", unit_, done, total_, note);
    std::fflush(stream_);
  }
}

void Progress::clear() {
  if (bar_is_shown_) {
    fmt::print(stream_, "\r\x1b[K");
    std::fflush(stream_);
    bar_is_shown_ = false;
  }
}

void Progress::draw_bar(int64_t done, const std::string& note) {
  const auto now = std::chrono::steady_clock::now();
  if (done != total_ && now - last_drawn_ < kRedrawInterval) {
    return;
  }
  last_drawn_ = now;
  const int64_t filled = std::clamp<int64_t>(done * kBarCells / total_, 0, kBarCells);
  std::string line = fmt::format("[{:=<{}}{:{}}] {} {}/{}  {}", "", filled, "", kBarCells - filled,
                                 unit_, done, total_, note);
  if (done > 0) {
    line += "  " + seconds_left(now - start_, done, total_);
  }
  line.resize(std::min(line.size(),
                       terminal_columns(stream_) - 1));  // a line that wraps could not be redrawn
  fmt::print(stream_, "\r{}\x1b[K", line);
  std::fflush(stream_);
  bar_is_shown_ = true;
}

}  // namespace foregrad::cli
