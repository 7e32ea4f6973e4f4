#include "cli/gzip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "cli/failure.h"

namespace foregrad::cli {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Failure(ExitCode::kData, fmt::format("`{}`: {}", path.string(), what));
}

void check_starts_as_gzip(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fail(path, fmt::format("cannot be opened: {}.", std::strerror(errno)));
  }
  std::array<char, 2> start{};
  file.read(start.data(), start.size());
  if (file.gcount() < 2) {
    fail(path, fmt::format("expected a gzip file, got {} bytes.", file.gcount()));
  }
  const auto first = static_cast<uint8_t>(start[0]);
  const auto second = static_cast<uint8_t>(start[1]);
  if (first != 0x1f || second != 0x8b) {
    fail(path,
         fmt::format("expected a gzip file, which begins with the bytes 1f 8b, got {:02x} {:02x}.",
                     first, second));
  }
}

}  // namespace

GzipReader::GzipReader(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    fail(path_, "there is no such file.");
  }
  if (error) {
    fail(path_, fmt::format("cannot be opened: {}.", error.message()));
  }
  if (!std::filesystem::is_regular_file(status)) {
    fail(path_, "expected a file, got a folder or a device.");
  }
  file_bytes_ = std::filesystem::file_size(path_, error);
  if (error) {
    fail(path_, fmt::format("its size cannot be read: {}.", error.message()));
  }
  check_starts_as_gzip(path_);
  file_.reset(gzopen(path_.c_str(), "rb"));
  if (!file_) {
    fail(path_, fmt::format("cannot be opened: {}.", std::strerror(errno)));
  }
}

size_t GzipReader::read(std::span<uint8_t> bytes) {
  constexpr size_t kMostPerCall = size_t{1} << 30;
  size_t done = 0;
  while (done < bytes.size()) {
    const size_t wanted = std::min(bytes.size() - done, kMostPerCall);
    const int got = gzread(file_.get(), bytes.data() + done, static_cast<unsigned>(wanted));
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) {
      fail(path_, "the compressed data is truncated: it ends before the gzip check sum.");
    }
    if (got < 0 || code < 0) {
      fail(path_, fmt::format("the compressed data is damaged: {}.",
                              code == Z_ERRNO ? std::strerror(errno) : text));
    }
    if (got == 0) {
      break;
    }
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace foregrad::cli
