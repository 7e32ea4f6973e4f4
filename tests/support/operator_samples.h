// How to draw arguments of operators that take others than the schema tells: one entry an operator.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

#include "support/sampler.h"

namespace foregrad::testing {

/// Draws arguments of the operator: most are valid where it has an entry; else by its schema.
/// Returns nothing if they can't be drawn.
std::optional<torch::jit::Stack> draw_arguments(const c10::OperatorHandle& op, Sampler& sampler);

}  // namespace foregrad::testing
