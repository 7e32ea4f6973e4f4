// Functionalization of operators of users' libraries that write arguments, by their functional
// variants (ops/functional_variant.h).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace foregrad {

/// Whether the operator needs it: no kernel functionalizes it.
bool needs_functional_variant(const c10::OperatorHandle& op);

/// Handles such an operator on the Functionalize key.
void handle_library_write(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                          torch::jit::Stack* stack);

}  // namespace foregrad
