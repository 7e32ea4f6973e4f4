#include "cli/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "expect_failure.h"
#include "temporary_folder.h"

namespace foregrad::cli {
namespace {

using testing::contents_of;
using testing::expect_failure;

class AtomicFileTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
};

TEST_F(AtomicFileTest, WritesAndReplaces) {
  write_file(folder_ / "a", "first");
  write_file(folder_ / "a", std::string("sec\0nd", 6));
  EXPECT_EQ(contents_of(folder_ / "a"), std::string("sec\0nd", 6));
  EXPECT_EQ(folder_.entries(), 1);
}

TEST_F(AtomicFileTest, KeepsToTheUmask) {
  const mode_t before = umask(0027);
  write_file(folder_ / "a", "x");
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat((folder_ / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(AtomicFileTest, MissingFolder) {
  expect_failure(
      ExitCode::kIo, [&] { write_file(folder_ / "no/a", "x"); }, "cannot write `", "no/a",
      "No such file or directory", "Make its folder first");
}

TEST_F(AtomicFileTest, FolderIsAFile) {
  write_file(folder_ / "a", "x");
  expect_failure(
      ExitCode::kIo, [&] { write_file(folder_ / "a/b", "x"); }, "Not a directory");
  expect_failure(
      ExitCode::kIo, [&] { check_folder_is_writable(folder_ / "a/b"); }, "cannot write `",
      "Not a directory");
}

TEST_F(AtomicFileTest, TargetIsAFolder) {
  std::filesystem::create_directories(folder_ / "a/b");
  expect_failure(
      ExitCode::kIo, [&] { write_file(folder_ / "a", "x"); }, "Is a directory",
      "Choose another place");
  EXPECT_EQ(folder_.entries(), 1);
}

TEST_F(AtomicFileTest, UnwritableFolder) {
  if (geteuid() == 0) {
    expect_failure(
        ExitCode::kIo, [] { write_file("/proc/foregrad", "x"); }, "cannot write `/proc/foregrad`");
    return;
  }
  chmod(folder_.path().c_str(), 0500);
  expect_failure(
      ExitCode::kIo, [&] { write_file(folder_ / "a", "x"); }, "Permission denied",
      "that you may write to");
  chmod(folder_.path().c_str(), 0700);
}

TEST_F(AtomicFileTest, FullDisk) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  expect_failure(
      ExitCode::kIo, [&] { write_all(full, "x", "a.svg"); }, "cannot write `a.svg`",
      "No space left on device", "Free some space");
  close(full);
}

TEST_F(AtomicFileTest, KeepsTheOldFileAndNoOtherWhenSpaceRunsOut) {
  write_file(folder_ / "a", "old");
  const auto previous_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_failure(
      ExitCode::kIo, [&] { write_file(folder_ / "a", std::string(5000, 'x')); }, "File too large",
      "Free some space");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, previous_handler);
  EXPECT_EQ(contents_of(folder_ / "a"), "old");
  EXPECT_EQ(folder_.entries(), 1);
}

TEST_F(AtomicFileTest, FolderCheckMakesTheFolderAndLeavesItEmpty) {
  check_folder_is_writable(folder_ / "x/y");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "x/y"));
}

}  // namespace
}  // namespace foregrad::cli
