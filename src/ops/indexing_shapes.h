// Shape rules of operators that take, move or find elements.
#pragma once

#include <span>

#include "ops/shape_rules.h"

namespace foregrad {

std::span<const ShapeRow> indexing_rules();

}  // namespace foregrad
