// Shape rules of operators that compute each element from those at the same place.
#pragma once

#include <span>

#include "ops/shape_rules.h"

namespace foregrad {

/// Activations, comparisons, arithmetic and pointwise losses' gradients: what a TensorIterator
/// gives.
std::span<const ShapeRow> elementwise_rules();

}  // namespace foregrad
