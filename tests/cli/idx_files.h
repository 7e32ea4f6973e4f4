// Writes IDX files, whole and damaged.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include "temporary_folder.h"

namespace foregrad::cli::testing {

inline void put_gzip(const std::filesystem::path& path, std::string_view contents) {
  gzFile file = gzopen(path.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error("cannot write " + path.string());
  gzwrite(file, contents.data(), static_cast<unsigned>(contents.size()));
  gzclose(file);
}

/// Returns the header of an array of unsigned bytes.
inline std::string idx_header(std::initializer_list<uint32_t> sizes) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(size >> shift));
  return bytes;
}

/// Writes the four files of a data set that has `train` and `test` pictures; all pixels are 51,
/// labels go round 0 to 9.
inline void put_data_set(const std::filesystem::path& folder, uint32_t train, uint32_t test) {
  for (const auto& [part, count] : {std::pair{"train", train}, std::pair{"t10k", test}}) {
    std::string labels = idx_header({count});
    for (uint32_t i = 0; i < count; ++i) labels.push_back(static_cast<char>(i % 10));
    put_gzip(folder / (std::string(part) + "-images-idx3-ubyte.gz"),
             idx_header({count, 28, 28}) + std::string(size_t{count} * 28 * 28, '\x33'));
    put_gzip(folder / (std::string(part) + "-labels-idx1-ubyte.gz"), labels);
  }
}

}  // namespace foregrad::cli::testing
