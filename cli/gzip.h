// Reading gzip files strictly.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace foregrad::cli {

/// Reads a gzip file from front to back. Unlike zlib's own `gzread` it takes no plain file for a
/// compressed one. Every error is a `Failure` of kind `kData` that names the file.
class GzipReader {
 public:
  /// Opens the file and checks that it is a regular file that begins as gzip does.
  explicit GzipReader(std::filesystem::path path);

  /// Fills `bytes` as far as the contents reach and returns how many it filled; the check sum holds
  /// when fewer come.
  size_t read(std::span<uint8_t> bytes);

  /// Returns the most bytes that the file can hold: deflate packs no more than 1032 bytes into one.
  uint64_t max_content_bytes() const { return (file_bytes_ + 1) * 1032; }

  uint64_t file_bytes() const { return file_bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };

  std::filesystem::path path_;
  uint64_t file_bytes_ = 0;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace foregrad::cli
