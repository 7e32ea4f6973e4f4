// Eager's in-place operators keep the strides of the tensor that they write. Functionalization
// takes those of the new value.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <vector>

namespace foregrad {

/// Watches the memories that one operator call is about to write.
class WrittenLayouts {
 public:
  /// Takes the call's arguments from the end of `stack`.
  WrittenLayouts(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  /// To be called after the operator: gives each memory that it wrote, and did not resize, the
  /// strides that it had.
  void keep() const;

 private:
  struct Memory {
    at::Tensor tensor;
    c10::Storage storage;
    at::Tensor before;
    size_t generation;
  };
  std::vector<Memory> memories_;
};

}  // namespace foregrad
