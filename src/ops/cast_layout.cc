#include "ops/cast_layout.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <vector>

#include "graph/call.h"

namespace foregrad {

namespace {

std::vector<at::Tensor> tensors_of(const torch::jit::Stack& stack) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& entry : stack) {
    for_each_tensor(entry, [&](const at::Tensor& tensor) {
      if (tensor.defined()) tensors.push_back(tensor);
    });
  }
  return tensors;
}

bool have_dtype(const std::vector<at::Tensor>& tensors, at::ScalarType dtype) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [dtype](const at::Tensor& tensor) { return tensor.scalar_type() == dtype; });
}

}  // namespace

bool cast_may_change_layout(const torch::jit::Stack& arguments, const torch::jit::Stack& results) {
  std::vector<at::Tensor> given = tensors_of(results);
  std::vector<at::Tensor> taken = tensors_of(arguments);
  std::erase_if(taken, [](const at::Tensor& tensor) { return tensor.dim() == 0; });
  // A comparison casts its arguments to each other's dtype.
  if (have_dtype(given, at::kBool)) given = taken;
  return std::any_of(taken.begin(), taken.end(), [&](const at::Tensor& tensor) {
    return !have_dtype(given, tensor.scalar_type()) &&
           at::empty_like(tensor).strides() != tensor.strides();
  });
}

}  // namespace foregrad
