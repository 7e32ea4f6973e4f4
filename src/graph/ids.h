// Index kinds as types: a value's number is not a node's number. (clang-tidy takes the zero that a
// rewritten comparison compares with for a pointer.)
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace foregrad {

/// Numbers a value in `Graph::values`. Passes never renumber values: an id means the same value
/// before and after.
struct ValueId {
  uint32_t index = 0;
  auto operator<=>(const ValueId&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Numbers a node in `Graph::nodes`.
struct NodeId {
  uint32_t index = 0;
  auto operator<=>(const NodeId&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Numbers an input of the compiled function: first the user's tensors in the order of the
/// arguments, then lifted ones, then view bases, then memories.
struct InputIndex {
  uint32_t index = 0;
  auto operator<=>(const InputIndex&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Numbers a tensor that the user's function returns, in the order of a walk through its result.
struct OutputIndex {
  uint32_t index = 0;
  auto operator<=>(const OutputIndex&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Numbers an entry of `ViewAndMutationMeta::bases`.
struct BaseIndex {
  uint32_t index = 0;
  auto operator<=>(const BaseIndex&) const = default;  // NOLINT(modernize-use-nullptr)
};

}  // namespace foregrad

template <>
struct std::hash<foregrad::ValueId> {
  size_t operator()(foregrad::ValueId id) const noexcept { return id.index; }
};
