// The version of the headers (macros) and of the library that the program runs with (`version()`).
#pragma once

#include <string_view>

#define FOREGRAD_VERSION_MAJOR 0
#define FOREGRAD_VERSION_MINOR 1
#define FOREGRAD_VERSION_PATCH 0

namespace foregrad {

/// Returns the library's version as "major.minor.patch".
std::string_view version();

}  // namespace foregrad
