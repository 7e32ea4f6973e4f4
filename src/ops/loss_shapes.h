// Shape rules of losses and their gradients.
#pragma once

#include <span>

#include "ops/shape_rules.h"

namespace foregrad {

std::span<const ShapeRow> loss_rules();

}  // namespace foregrad
