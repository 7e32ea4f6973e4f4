// Names of the numbers that stand for layouts and memory formats.
#pragma once

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>

#include <array>
#include <string_view>

namespace foregrad {

// In the order of `at::Layout`.
inline constexpr std::array<std::string_view, 8> kLayoutNames = {
    "strided",    "sparse",     "sparse_csr", "mkldnn",
    "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
static_assert(kLayoutNames.size() == static_cast<size_t>(c10::Layout::NumOptions));

// In the order of `at::MemoryFormat`.
inline constexpr std::array<std::string_view, 4> kMemoryFormatNames = {
    "contiguous", "preserve", "channels_last", "channels_last_3d"};
static_assert(kMemoryFormatNames.size() == static_cast<size_t>(c10::MemoryFormat::NumOptions));

}  // namespace foregrad
