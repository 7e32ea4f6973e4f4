// Runs programs, instruction by instruction, as eager libtorch would.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/fuzz/program.h"

namespace foregrad::cli::fuzz {

/// Holds the values made so far; each a list, mostly of one tensor.
using Values = std::vector<Tensors>;

/// Returns one tensor among the values. Throws `c10::Error` if it is not there: a list can be
/// shorter than it was when the program was drawn.
const at::Tensor& value_of(const Values& values, Ref ref);

/// Returns a value of one part for each tensor.
Values to_values(const Tensors& tensors);

/// Runs one instruction and appends its result.
void run(const Instruction& instruction, Values& values);

/// Runs the function of a program.
Tensors run(const Body& body, const Tensors& arguments);

/// Whether a value of the function, or an argument, has no elements.
bool meets_empty(const Body& body, const Tensors& arguments);

/// Makes a tensor whose elements depend on the seed alone: quarters from -2 to 2, exact in every
/// floating type, or integers from 0 to 2, or truth values.
at::Tensor make_base(const Base& base, uint64_t data_seed);

/// While it lives, the CPU autocasts to bfloat16, or not. Casts are not kept: a kept one is of what
/// a tensor held before it was written.
class AutocastScope {
 public:
  explicit AutocastScope(bool is_enabled);
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;
  ~AutocastScope();

 private:
  bool was_enabled_;
  bool kept_casts_;
};

/// While it lives, the caller is in the modes of the call.
class CallScope {
 public:
  explicit CallScope(const Inputs& inputs)
      : grad_mode_(inputs.mode == CallMode::Grad), autocast_(inputs.is_autocast) {
    if (inputs.mode == CallMode::Inference) inference_mode_.emplace();
  }

 private:
  c10::AutoGradMode grad_mode_;
  AutocastScope autocast_;
  std::optional<c10::InferenceMode> inference_mode_;
};

/// What the caller holds before a call.
struct Prepared {
  Tensors visible;  // all it made: bases, views of them, arguments
  Tensors arguments;
};

/// Makes what the caller holds before a call.
Prepared prepare(const Inputs& inputs, uint64_t data_seed);

}  // namespace foregrad::cli::fuzz
