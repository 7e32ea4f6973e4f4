// Shape rules of operators that reduce or scan dimensions.
#pragma once

#include <span>

#include "ops/shape_rules.h"

namespace foregrad {

std::span<const ShapeRow> reduction_rules();

}  // namespace foregrad
