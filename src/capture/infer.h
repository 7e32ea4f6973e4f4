// Runs an operator on meta tensors: what its results will look like, without their data.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace foregrad {

/// Where the sizes and strides of a result came from.
enum class ShapeSource : uint8_t {
  Rule,        // the op table's rule
  MetaKernel,  // libtorch's Meta kernel
  RealKernel,  // the last resort: the CPU kernel on zeros of the same shape, counted in the report
};

/// Replaces the operator's arguments on top of the stack by its results. Tensors are meta tensors
/// before and after. Draws no random numbers. Throws what the kernel throws; refuses data-dependent
/// operators, naming them. The caller runs below tracing.
ShapeSource infer_results(const c10::OperatorHandle& op, torch::jit::Stack& stack);

/// Replaces them by the results of the CPU kernel on zeros of the same types. Draws no random
/// numbers. Throws what the kernel throws. The caller runs below tracing.
void run_on_zeros(const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace foregrad
