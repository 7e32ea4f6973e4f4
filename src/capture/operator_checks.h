// What an operator's own kernel would do that a trace does not show.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <vector>

#include "graph/operand.h"
#include "graph/tensor_type.h"

namespace foregrad {

/// A write to a tensor whose elements share memory, or that shares some with another argument, is
/// an error of the operator's own kernel: its Meta kernel throws the same. What eager accepts
/// depends on the order in which elements are written: a `Refusal`. The arguments, stand-ins, are
/// on top of the stack.
void check_overlap(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

/// An `out` argument and the type that the operator's own kernel leaves it in.
struct ExpectedOut {
  at::Tensor stand_in;
  TensorType type;
};

/// Functionalization takes `add` for `add.out` and converts what it gives: asks the operator itself
/// what it does to its `out` arguments. Throws what it throws. The arguments are on top of the
/// stack.
std::vector<ExpectedOut> infer_outs(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

/// Throws `Refusal` if one of them was not left so.
void check_outs(const c10::OperatorHandle& op, const std::vector<ExpectedOut>& outs);

/// libtorch's factories fill what they made in place, which its version shows (`zeros`, `rand`).
/// Gives the one result on top of the stack the version that the same call gives where no trace is
/// on. Does nothing for operators that take tensors.
void give_version(const c10::OperatorHandle& op, const std::vector<Operand>& args,
                  const torch::jit::Stack& stack);

}  // namespace foregrad
