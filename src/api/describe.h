// What the report says of a compilation. Written on demand: graph text costs more than compiling.
#pragma once

#include "api/compilation.h"

namespace foregrad::detail {

/// Describes a compilation that was not refused.
Report::Specialisation describe(const Compilation& made);

}  // namespace foregrad::detail
