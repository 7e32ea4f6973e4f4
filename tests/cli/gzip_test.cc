#include "cli/gzip.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "expect_failure.h"
#include "idx_files.h"
#include "temporary_folder.h"

namespace foregrad::cli {
namespace {

using testing::expect_failure;
using testing::put;
using testing::put_gzip;

class GzipTest : public ::testing::Test {
 protected:
  size_t read(size_t bytes = 100'000) {
    GzipReader reader(path_);
    buffer_.resize(bytes);
    return reader.read(buffer_);
  }

  /// Text that deflate cannot shorten to nothing, so that cutting it hurts.
  static std::string noise(size_t bytes) {
    std::mt19937 random(7);
    std::string text(bytes, '\0');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "file.gz";
  std::vector<uint8_t> buffer_;
};

TEST_F(GzipTest, ReadsContentsInParts) {
  put_gzip(path_, "abcdef");
  GzipReader reader(path_);
  std::vector<uint8_t> part(4);
  EXPECT_EQ(reader.read(part), 4u);
  EXPECT_EQ(part, (std::vector<uint8_t>{'a', 'b', 'c', 'd'}));
  EXPECT_EQ(reader.read(part), 2u);
  EXPECT_EQ(part[1], 'f');
  EXPECT_EQ(reader.read(part), 0u);
}

TEST_F(GzipTest, MissingFile) {
  expect_failure(
      ExitCode::kData, [&] { read(); }, path_.string(), "there is no such file");
}

TEST_F(GzipTest, FileBelowAFile) {
  put(folder_ / "plain", "x");
  path_ = folder_ / "plain/file.gz";
  expect_failure(
      ExitCode::kData, [&] { read(); }, path_.string());
}

TEST_F(GzipTest, FolderInsteadOfFile) {
  std::filesystem::create_directory(path_);
  expect_failure(
      ExitCode::kData, [&] { read(); }, "expected a file, got a folder or a device");
}

TEST_F(GzipTest, NotGzip) {
  put(path_, "<html>not found</html>");
  expect_failure(
      ExitCode::kData, [&] { read(); }, path_.string(), "expected a gzip file", "1f 8b",
      "got 3c 68");
}

TEST_F(GzipTest, EmptyFile) {
  put(path_, "");
  expect_failure(
      ExitCode::kData, [&] { read(); }, "expected a gzip file, got 0 bytes");
}

TEST_F(GzipTest, TruncatedAnywhere) {
  put_gzip(path_, noise(5000));
  const std::string whole = testing::contents_of(path_);
  for (const size_t bytes :
       {size_t{3}, size_t{10}, size_t{100}, whole.size() - 8, whole.size() - 1}) {
    put(path_, whole.substr(0, bytes));
    expect_failure(
        ExitCode::kData, [&] { read(); }, path_.string(), "truncated");
  }
}

TEST_F(GzipTest, DamagedBytes) {
  put_gzip(path_, noise(5000));
  std::string bytes = testing::contents_of(path_);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  put(path_, bytes);
  expect_failure(
      ExitCode::kData, [&] { read(); }, path_.string(), "damaged");
}

TEST_F(GzipTest, DamagedCheckSum) {
  put_gzip(path_, "abc");
  std::string bytes = testing::contents_of(path_);
  bytes[bytes.size() - 8] = static_cast<char>(bytes[bytes.size() - 8] ^ 1);
  put(path_, bytes);
  expect_failure(
      ExitCode::kData, [&] { read(); }, "damaged", "incorrect data check");
}

TEST_F(GzipTest, BoundOnContentsHolds) {
  put_gzip(path_, std::string(10'000'000, '\0'));
  EXPECT_GE(GzipReader(path_).max_content_bytes(), 10'000'000u);
  EXPECT_LT(GzipReader(path_).max_content_bytes(), 20'000'000u);
}

}  // namespace
}  // namespace foregrad::cli
