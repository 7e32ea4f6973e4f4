// Shape rules of operators that draw random numbers.
#pragma once

#include <span>

#include "ops/shape_rules.h"

namespace foregrad {

std::span<const ShapeRow> random_rules();

}  // namespace foregrad
