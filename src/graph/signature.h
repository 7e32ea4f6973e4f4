// Typed roles for the inputs and outputs of a graph. A position is computed from roles; there are
// no parallel lists.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/ids.h"

namespace foregrad {

// ---- roles of inputs
/// A tensor among the user's arguments.
struct UserInput {
  InputIndex input;
  bool operator==(const UserInput&) const = default;
};
/// A tensor that the function reached by capture: a parameter, a buffer, a closed-over tensor.
struct Lifted {
  InputIndex input;
  bool operator==(const Lifted&) const = default;
};
/// A tensor that other inputs are views of, as autograd knows, and that is no argument itself.
struct ViewBase {
  InputIndex input;
  bool operator==(const ViewBase&) const = default;
};
/// A stretch of storage that other inputs lie in: the synthetic base that stands for them.
struct Memory {
  InputIndex input;
  bool operator==(const Memory&) const = default;
};

/// An input of the call as it is when backward runs: what a custom function's backward reads of a
/// tensor that it kept without a check.
struct LateInput {
  InputIndex input;
  bool operator==(const LateInput&) const = default;
};

// ---- roles of outputs
/// A tensor that the user's function returns.
struct UserOutput {
  OutputIndex output;
  bool operator==(const UserOutput&) const = default;
};
/// The value that input `of` has after the call.
struct MutatedInput {
  InputIndex of;
  bool operator==(const MutatedInput&) const = default;
};
/// A tensor that is no output itself: the runtime needs it to make outputs that share its memory.
struct IntermediateBase {
  BaseIndex base;
  bool operator==(const IntermediateBase&) const = default;
};
/// The gradient with respect to the value that input `of` had before the call.
struct Grad {
  InputIndex of;
  bool operator==(const Grad&) const = default;
};

/// What backward leaves in input `of`.
struct LateWrite {
  InputIndex of;
  bool operator==(const LateWrite&) const = default;
};

// ---- roles of both
/// A value that forward hands to backward.
struct Saved {
  ValueId value;
  bool operator==(const Saved&) const = default;
};

/// An output that takes a tangent.
using Differentiable = std::variant<UserOutput, MutatedInput, IntermediateBase>;

/// The gradient of the loss with respect to the output `of`.
struct Tangent {
  Differentiable of;
  bool operator==(const Tangent&) const = default;
};

/// What backward leaves in the tangent of `of`.
struct TangentWrite {
  Differentiable of;
  bool operator==(const TangentWrite&) const = default;
};

using InputRole = std::variant<UserInput, Lifted, ViewBase, Memory, Tangent, LateInput, Saved>;
using OutputRole =
    std::variant<UserOutput, MutatedInput, IntermediateBase, Grad, LateWrite, TangentWrite, Saved>;

/// Writes a role as in graph text, for example `tangent(output(0))`.
std::string to_text(const InputRole& role);
std::string to_text(const OutputRole& role);
std::string to_text(const Differentiable& role);

/// Whether backward takes or gives it, not forward.
bool belongs_to_backward(const InputRole& role);
bool belongs_to_backward(const OutputRole& role);

/// Returns the input that a primal's role names; nothing for tangents and saved values.
std::optional<InputIndex> primal_of(const InputRole& role);

/// Returns the output role as one that takes a tangent; nothing for gradients and saved values.
std::optional<Differentiable> differentiable_of(const OutputRole& role);

}  // namespace foregrad
