// Shape rules of fused attention and recurrent layers, and of their gradients.
#pragma once

#include <span>

#include "ops/shape_rules.h"

namespace foregrad {

std::span<const ShapeRow> fused_rules();

}  // namespace foregrad
