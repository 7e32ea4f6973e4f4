// A random program as data: what the caller prepares, what the function does, what the caller does
// with the results. A program is only data so that it can be run, shrunk and printed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/fuzz/operation.h"

namespace foregrad::cli::fuzz {

/// Names a tensor among numbered values. An operation that returns a list makes one value of
/// several parts.
struct Ref {
  size_t value = 0;
  size_t part = 0;
  bool operator==(const Ref&) const = default;
};

/// Whether autograd records an instruction.
enum class Recording : uint8_t {
  AsBefore,
  Off,  // under `at::NoGradGuard`
  On,   // under `at::AutoGradMode(true)`
};

/// Whether the CPU autocasts to bfloat16.
enum class Autocast : uint8_t { AsBefore, Off, On };

/// What an instruction runs under.
struct Modes {
  Recording recording = Recording::AsBefore;
  Autocast autocast = Autocast::AsBefore;
  bool operator==(const Modes&) const = default;
};

/// Applies one operation to earlier values. The result is the next value; an in-place operation
/// gives its first operand again.
struct Instruction {
  const Operation* operation = nullptr;
  std::vector<Ref> operands{};
  Parameters parameters{};
  Modes modes{};
  bool operator==(const Instruction&) const = default;
};

/// A tensor with memory of its own that the caller makes.
struct Base {
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> sizes{};
  bool requires_grad = false;
  bool operator==(const Base&) const = default;
};

/// The mode that the caller is in.
enum class CallMode : uint8_t { Grad, NoGrad, Inference };

/// How the caller makes the arguments. Values: the bases, then one for each instruction.
struct Inputs {
  std::vector<Base> bases{};
  std::vector<Instruction> setup{};
  std::vector<Ref> arguments{};
  CallMode mode = CallMode::Grad;  // of the call
  bool is_autocast = false;        // and whether it is made under autocast
  bool operator==(const Inputs&) const = default;
};

/// What the function does. Values: the arguments, then one for each instruction.
struct Body {
  std::vector<Instruction> instructions{};
  std::vector<Ref> outputs{};
  bool operator==(const Body&) const = default;
};

/// One backward pass by the caller.
struct Backward {
  enum class Kind : uint8_t {
    Backward,  // torch::autograd::backward
    Grad,      // torch::autograd::grad
  };
  enum class Tangent : uint8_t {
    Ones,
    Expanded,  // one number at stride 0
    Varied,
  };

  Kind kind = Kind::Backward;
  Tangent tangent = Tangent::Ones;
  std::vector<size_t> outputs{};  // those that do not require grad are left out
  // Of `Grad`: how often gradients are taken, each time of those that came before.
  int order = 1;
  bool differentiates_tangents = false;  // the first tangents require grad
  bool is_autocast = false;              // it runs under autocast
  bool operator==(const Backward&) const = default;
};

/// What the caller asks to be shown of a gradient on its way.
struct Watch {
  enum class Kind : uint8_t {
    Hook,  // that doubles the gradient
    RetainGrad,
  };

  Kind kind = Kind::Hook;
  size_t value = 0;  // an output, or an argument numbered on from them
  bool operator==(const Watch&) const = default;
};

struct Program {
  int calls = 3;  // fewer only when shrunk
  Inputs inputs;  // of the first and the second call, with other data
  Inputs other;   // of the third call: as many arguments, aliased in another way
  Body body;
  // What the caller does next. Values: the outputs, then the arguments, each a value.
  std::vector<Watch> watches{};  // of tensors that require grad and are no views
  bool is_interleaved = false;   // another call, with its backward, comes between call and backward
  std::vector<Instruction> writes{};
  bool writes_before_backward = false;
  std::vector<Backward> backwards{};
  bool operator==(const Program&) const = default;
};

}  // namespace foregrad::cli::fuzz
