// Layout: two zero bytes, a byte for the element type (0x08: unsigned byte), a byte for the number
// of dimensions, each dimension as a big-endian 32-bit number, then the values, last dimension
// fastest.
#include "cli/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <string>

#include "cli/failure.h"
#include "cli/gzip.h"

namespace foregrad::cli {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;

[[noreturn]] void fail(const GzipReader& file, const std::string& what) {
  throw Failure(ExitCode::kData, fmt::format("`{}`: {}", file.path().string(), what));
}

void read_header_bytes(GzipReader& file, std::span<uint8_t> bytes, const char* what) {
  const size_t got = file.read(bytes);
  if (got != bytes.size()) {
    fail(file, fmt::format("the contents are truncated: expected {} bytes of {}, got {}.",
                           bytes.size(), what, got));
  }
}

void check_magic(GzipReader& file, size_t rank) {
  std::array<uint8_t, 4> magic{};
  read_header_bytes(file, magic, "magic number");
  if (magic[0] != 0 || magic[1] != 0) {
    fail(file,
         fmt::format("expected an IDX file, whose magic number is 00 00 08 {:02x}, got {:02x}.",
                     rank, fmt::join(magic, " ")));
  }
  if (magic[2] != kUnsignedByte) {
    fail(file,
         fmt::format("expected the IDX element type 08 (unsigned byte), got {:02x}.", magic[2]));
  }
  if (magic[3] != rank) {
    fail(file, fmt::format("expected {} dimensions, got {}.", rank, magic[3]));
  }
}

std::vector<int64_t> read_sizes(GzipReader& file, size_t rank) {
  std::vector<uint8_t> bytes(rank * 4);
  read_header_bytes(file, bytes, "sizes");
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < rank; ++i) {
    const uint32_t size = (uint32_t{bytes[4 * i]} << 24) | (uint32_t{bytes[4 * i + 1]} << 16) |
                          (uint32_t{bytes[4 * i + 2]} << 8) | uint32_t{bytes[4 * i + 3]};
    sizes.push_back(size);
  }
  return sizes;
}

/// Returns the number of values that the sizes claim, refused if the file is too small to hold
/// them.
size_t checked_count(const GzipReader& file, const std::vector<int64_t>& sizes) {
  const uint64_t limit = file.max_content_bytes();
  uint64_t count = 1;
  for (const int64_t size : sizes) {
    if (size == 0) {
      fail(file, fmt::format("expected sizes of at least 1, got [{}].", fmt::join(sizes, ", ")));
    }
    if (count > limit / static_cast<uint64_t>(size)) {
      fail(file,
           fmt::format(
               "the header claims sizes [{}], but a gzip file of {} bytes holds at most {} values.",
               fmt::join(sizes, ", "), file.file_bytes(), limit));
    }
    count *= static_cast<uint64_t>(size);
  }
  return count;
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, size_t rank) {
  GzipReader file(path);
  check_magic(file, rank);
  IdxArray array;
  array.sizes = read_sizes(file, rank);
  array.values.resize(checked_count(file, array.sizes));
  const size_t got = file.read(array.values);
  if (got != array.values.size()) {
    fail(file, fmt::format("the contents are truncated: sizes [{}] need {} values, got {}.",
                           fmt::join(array.sizes, ", "), array.values.size(), got));
  }
  std::array<uint8_t, 1> extra{};
  if (file.read(extra) != 0) {
    fail(file, fmt::format("expected {} values for sizes [{}], got more.", array.values.size(),
                           fmt::join(array.sizes, ", ")));
  }
  return array;
}

}  // namespace foregrad::cli
