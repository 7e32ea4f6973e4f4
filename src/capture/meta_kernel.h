// Which kernel tells the types of an operator's results.
//
// Where Python's torch is in the process it has put kernels of its own, written in Python, before
// libtorch's for meta tensors. They are checked for sizes more than for strides: `linalg_eig` and
// `svd` give others than the CPU does, and gradients would be taken of the wrong elements. They are
// slower too, and need the interpreter's lock. libtorch's own kernels are asked instead, as in a
// process without Python; of operators that have none there is no kernel to ask.
//
// Operators of other libraries are theirs: what they registered is asked.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

namespace foregrad {

class MetaKernel {
 public:
  /// Finds the operator's kernel for meta tensors.
  explicit MetaKernel(const c10::OperatorHandle& op);

  bool exists() const { return exists_; }
  /// Whether the kernel is one that the dispatcher would not call.
  bool is_hidden() const { return hidden_.has_value(); }
  /// Calls it. The caller runs below tracing and below autograd.
  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) const;

 private:
  bool exists_ = false;
  std::optional<c10::KernelFunction> hidden_;
};

}  // namespace foregrad
