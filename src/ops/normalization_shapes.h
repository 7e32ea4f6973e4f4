// Shape rules of layer and group normalization.
#pragma once

#include <span>

#include "ops/shape_rules.h"

namespace foregrad {

std::span<const ShapeRow> normalization_rules();

}  // namespace foregrad
