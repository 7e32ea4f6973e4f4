// The IDX format of the MNIST family of data sets: an n-dimensional array of bytes behind a short
// header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace foregrad::cli {

/// Holds an array of unsigned bytes in row-major order.
struct IdxArray {
  std::vector<int64_t> sizes;
  std::vector<uint8_t> values;
};

/// Reads a gzipped IDX file of unsigned bytes with `rank` dimensions, each at least 1.
/// Throws a `Failure` of kind `kData` for anything else: wrong magic number, element type or rank,
/// a size that the file cannot hold (found before memory is taken for it), too few or too many
/// values, damaged compression.
IdxArray read_idx(const std::filesystem::path& path, size_t rank);

}  // namespace foregrad::cli
