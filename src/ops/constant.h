// The operator that stands for a tensor whose elements were written in C++: they are part of the
// graph, as numbers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace foregrad {

struct ConstantCall {
  c10::OperatorHandle op;
  std::vector<c10::IValue> args;
};

/// Returns the call that gives a contiguous tensor of these elements. Numbers are kept exactly, but
/// for which NaN it was.
ConstantCall constant_call(const at::Tensor& elements);

}  // namespace foregrad
