#include <algorithm>
#include <array>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/literal.h"

namespace foregrad {
namespace {

// In the order of `at::ScalarType`.
constexpr std::array<std::string_view, 47> kDtypeNames = {
    "u8",    "i8",     "i16",       "i32",        "i64",        "f16",        "f32",
    "f64",   "c32",    "c64",       "c128",       "bool",       "qi8",        "qu8",
    "qi32",  "bf16",   "qu4x2",     "qu2x4",      "bits1x8",    "bits2x4",    "bits4x2",
    "bits8", "bits16", "f8e5m2",    "f8e4m3fn",   "f8e5m2fnuz", "f8e4m3fnuz", "u16",
    "u32",   "u64",    "u1",        "u2",         "u3",         "u4",         "u5",
    "u6",    "u7",     "i1",        "i2",         "i3",         "i4",         "i5",
    "i6",    "i7",     "f8e8m0fnu", "f4e2m1fnx2", "bc32"};

static_assert(kDtypeNames.size() == static_cast<size_t>(at::ScalarType::Undefined),
              "libtorch has other dtypes than this table; give each one a name");
static_assert(kDtypeNames[static_cast<size_t>(at::ScalarType::Bool)] == "bool");
static_assert(kDtypeNames[static_cast<size_t>(at::ScalarType::BFloat16)] == "bf16");
static_assert(kDtypeNames[static_cast<size_t>(at::ScalarType::UInt16)] == "u16");
static_assert(kDtypeNames[static_cast<size_t>(at::ScalarType::Float8_e8m0fnu)] == "f8e8m0fnu");
static_assert(kDtypeNames[static_cast<size_t>(at::ScalarType::BComplex32)] == "bc32");

}  // namespace

std::string dtype_name(at::ScalarType dtype) {
  const auto number = static_cast<size_t>(dtype);
  TORCH_CHECK(number < kDtypeNames.size(), "expected a dtype, got number ", number);
  return std::string(kDtypeNames[number]);
}

at::ScalarType dtype_from_name(std::string_view name) {
  const auto* found = std::ranges::find(kDtypeNames, name);
  TORCH_CHECK(found != kDtypeNames.end(), "expected a dtype (",
              fmt::format("{}", fmt::join(kDtypeNames, ", ")), "), got `", name, "`");
  return static_cast<at::ScalarType>(found - kDtypeNames.begin());
}

}  // namespace foregrad
