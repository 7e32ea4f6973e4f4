// The trace key's handler: the lowest level of a trace.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace foregrad {

/// Handles every operator that reaches the trace key: finds the results' types, and appends a node
/// to the thread's trace.
void handle_traced_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                            torch::jit::Stack* stack);

}  // namespace foregrad
