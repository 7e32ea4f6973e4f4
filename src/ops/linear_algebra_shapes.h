// Shape rules of products, distances and solvers.
#pragma once

#include <span>

#include "ops/shape_rules.h"

namespace foregrad {

std::span<const ShapeRow> linear_algebra_rules();

}  // namespace foregrad
