// Compares what is inferred of an operator's results with what its real kernel gives.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <string>

namespace foregrad::testing {

/// Gives an operator's results on meta tensors, nothing where it does not cover the arguments.
using Inference = std::function<std::optional<torch::jit::Stack>(torch::jit::Stack arguments)>;

enum class Finding : uint8_t {
  Agrees,
  NotCovered,      // nothing is inferred, whatever the kernel does
  Invalid,         // both throw
  StricterThanIt,  // the inference throws, the kernel does not
  CoversInvalid,   // the kernel throws, the inference does not
  Differs,         // in sizes, strides, dtype or what is defined
};

struct ShapeFinding {
  Finding finding = Finding::Agrees;
  std::string text;  // the call and what came of it
};

/// Calls the operator below autograd, and `infer` with the same arguments on the meta device.
ShapeFinding compare_shapes(const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
                            const Inference& infer);

/// Returns what the operator's own kernels give on meta tensors.
Inference meta_kernel(const c10::OperatorHandle& op);

/// Writes a call as `aten::flip(f32[2,3]{3,1}, [0])`.
std::string call_text(const c10::OperatorHandle& op, const torch::jit::Stack& arguments);

}  // namespace foregrad::testing
