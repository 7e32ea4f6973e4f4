// What an operator's own kernel would do that a trace does not show.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <vector>

#include "graph/operand.h"

namespace foregrad {

/// A write to a tensor whose elements share memory, or that shares some with another argument, is
/// an error of the operator's own kernel: its Meta kernel throws the same. What eager accepts
/// depends on the order in which elements are written: a `Refusal`. The arguments, stand-ins, are
/// on top of the stack.
void check_overlap(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

/// libtorch's factories fill what they made in place, which its version shows (`zeros`, `rand`).
/// Gives the one result on top of the stack the version that the same call gives where no trace is
/// on. Does nothing for operators that take tensors.
void give_version(const c10::OperatorHandle& op, const std::vector<Operand>& args,
                  const torch::jit::Stack& stack);

}  // namespace foregrad
