// Shape rules of pooling, padding, grids and rearrangements of pixels.
#pragma once

#include <span>

#include "ops/shape_rules.h"

namespace foregrad {

std::span<const ShapeRow> pooling_rules();

}  // namespace foregrad
