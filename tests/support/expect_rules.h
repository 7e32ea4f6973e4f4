// Holds shape rules against the real kernels.
#pragma once

#include <span>

#include "ops/shape_rules.h"
#include "support/shape_check.h"

namespace foregrad::testing {

/// Returns what a rule gives.
Inference shape_rule(ShapeRule rule);

/// Calls each operator with arguments drawn at random (operator_samples.h), and expects that its
/// rule gives the real kernel's results where it gives any, gives none where the kernel throws (or
/// throws too), and covers enough.
void expect_rules_agree(std::span<const ShapeRow> rows);

}  // namespace foregrad::testing
