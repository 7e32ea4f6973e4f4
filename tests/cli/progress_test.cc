#include "cli/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>

#include "temporary_folder.h"

namespace foregrad::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(ProgressTest, PlainLinesOutsideATerminal) {
  const testing::TemporaryFolder folder;
  std::FILE* file = std::fopen((folder / "log").c_str(), "w");
  {
    Progress progress(file, "step", 100);
    for (int i = 1; i <= 100; ++i) progress.update(i, "loss 1");
  }
  std::fclose(file);
  const std::string text = testing::contents_of(folder / "log");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);  // the first, then every fifth
  EXPECT_THAT(text, HasSubstr("step 5/100: loss 1\n"));
  EXPECT_THAT(text, EndsWith("step 100/100: loss 1\n"));
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

/// A terminal whose other end is read here.
class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    grantpt(master_);
    unlockpt(master_);
    stream_ = fdopen(open(ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC), "w");
  }
  ~Terminal() {
    std::fclose(stream_);
    close(master_);
  }

  std::FILE* stream() const { return stream_; }

  std::string written() const {
    std::string text;
    pollfd polled{master_, POLLIN, 0};
    while (poll(&polled, 1, 100) > 0) {
      std::array<char, 4096> buffer;
      const ssize_t got = read(master_, buffer.data(), buffer.size());
      if (got <= 0) break;
      text.append(buffer.data(), static_cast<size_t>(got));
    }
    return text;
  }

 private:
  int master_;
  std::FILE* stream_ = nullptr;
};

TEST(ProgressTest, BarOnATerminalIsRemovedAtTheEnd) {
  const Terminal terminal;
  {
    Progress progress(terminal.stream(), "step", 10);
    progress.update(5, "loss 1");
    EXPECT_THAT(terminal.written(),
                HasSubstr("[===============               ] step 5/10  loss 1"));
  }
  EXPECT_EQ(terminal.written(), "\r\x1b[K");
}

TEST(ProgressTest, BarIsNotDrawnMoreOftenThanEyesSee) {
  const Terminal terminal;
  Progress progress(terminal.stream(), "step", 10'000);
  for (int i = 1; i < 1000; ++i) progress.update(i, "");
  const std::string text = terminal.written();
  EXPECT_LE(std::count(text.begin(), text.end(), '\r'), 10);
}

TEST(ProgressTest, BarFitsTheTerminal) {
  const Terminal terminal;
  Progress progress(terminal.stream(), "step", 10);
  progress.update(10, std::string(500, 'x'));
  EXPECT_LE(terminal.written().size(), 80 + std::string("\r\x1b[K").size());
}

TEST(ProgressTest, ShortTotals) {
  const Terminal terminal;
  Progress progress(terminal.stream(), "step", 0);
  progress.update(1, "");
  EXPECT_THAT(terminal.written(), HasSubstr("step 1/1"));
}

}  // namespace
}  // namespace foregrad::cli
