// The inputs of a call, and what can be told of them without their data.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "graph/arrangement.h"

namespace foregrad {

/// Inputs and their facts, entry by entry: the tensors that were given, then the tensors that
/// autograd knows as bases of some of them and that are not among them.
struct InputSet {
  std::vector<at::Tensor> tensors;
  std::vector<InputFacts> facts;
};

/// Looks at tensors that are defined and strided, each given once.
InputSet gather_inputs(std::span<const at::Tensor> tensors);

}  // namespace foregrad
