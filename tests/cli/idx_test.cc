#include "cli/idx.h"

#include <gtest/gtest.h>

#include "expect_failure.h"
#include "idx_files.h"
#include "temporary_folder.h"

namespace foregrad::cli {
namespace {

using testing::expect_failure;
using testing::idx_header;
using testing::put_gzip;

class IdxTest : public ::testing::Test {
 protected:
  /// Expects the contents to be refused, by a message that names the file and holds each part.
  template <typename... Parts>
  void expect_refused(const std::string& contents, size_t rank, const Parts&... parts) {
    put_gzip(path_, contents);
    expect_failure(
        ExitCode::kData, [&] { read_idx(path_, rank); }, "`" + path_.string() + "`", parts...);
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "a.gz";
};

TEST_F(IdxTest, ReadsSizesAndValues) {
  put_gzip(path_, idx_header({2, 1, 3}) + "abcdef");
  const IdxArray array = read_idx(path_, 3);
  EXPECT_EQ(array.sizes, (std::vector<int64_t>{2, 1, 3}));
  EXPECT_EQ(array.values, (std::vector<uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
}

TEST_F(IdxTest, ReadsBigEndianSizes) {
  put_gzip(path_, idx_header({0x0102}) + std::string(0x0102, 'x'));
  EXPECT_EQ(read_idx(path_, 1).sizes, (std::vector<int64_t>{258}));
}

TEST_F(IdxTest, Empty) {
  expect_refused("", 1, "truncated: expected 4 bytes of magic number, got 0");
}

TEST_F(IdxTest, WrongMagic) {
  expect_refused("PK\x03\x04 and so on", 3, "expected an IDX file", "00 00 08 03",
                 "got 50 4b 03 04");
}

TEST_F(IdxTest, WrongElementType) {
  std::string bytes = idx_header({1}) + "a";
  bytes[2] = 0x0d;
  expect_refused(bytes, 1, "expected the IDX element type 08 (unsigned byte), got 0d");
}

TEST_F(IdxTest, WrongRank) {
  expect_refused(idx_header({1}) + "a", 3, "expected 3 dimensions, got 1");
}

TEST_F(IdxTest, TruncatedSizes) {
  expect_refused(idx_header({1, 2, 3}).substr(0, 14), 3,
                 "truncated: expected 12 bytes of sizes, got 10");
}

TEST_F(IdxTest, TruncatedValues) {
  expect_refused(idx_header({2, 2}) + "abc", 2, "truncated: sizes [2, 2] need 4 values, got 3");
}

TEST_F(IdxTest, TrailingValues) {
  expect_refused(idx_header({2, 2}) + "abcde", 2, "expected 4 values for sizes [2, 2], got more");
}

TEST_F(IdxTest, ZeroSize) {
  expect_refused(idx_header({0, 28, 28}), 3, "expected sizes of at least 1, got [0, 28, 28]");
}

TEST_F(IdxTest, AbsurdSizes) {
  expect_refused(idx_header({0xffffffff, 0xffffffff, 0xffffffff}) + "a", 3,
                 "the header claims sizes [4294967295, 4294967295, 4294967295]", "holds at most");
  expect_refused(idx_header({4'000'000'000}) + "a", 1, "the header claims sizes [4000000000]");
}

}  // namespace
}  // namespace foregrad::cli
