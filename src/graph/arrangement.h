// How the inputs lie in memory and in autograd, as tensors that a trace can stand in for.
//
// Most inputs are graph inputs of their own. Where one is written, that is not enough: others may
// lie in the same storage, be views of one tensor to autograd, or have gaps between their elements.
// Such an input is then taken as a view: of the tensor that autograd knows as its base, and of a
// *memory*, the stretch of storage that it lies in, which is the graph's input in its place.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/tensor_type.h"

namespace foregrad {

/// What an input is before the call, as far as it can be told without its data.
struct InputFacts {
  TensorType type;  // the offset counts from the start of the storage
  bool requires_grad = false;
  bool is_leaf = true;
  uint32_t storage = 0;  // equal for inputs that share it
  int64_t storage_bytes = 0;
  std::optional<uint32_t> view_of;  // the input that autograd knows as its base
  bool is_argument = true;          // or captured; a base that is neither is there for its views

  bool operator==(const InputFacts&) const = default;
};

/// Where an input lies. Neither: it is a graph input of its own.
struct Placement {
  std::optional<uint32_t> view_of;  // number of the input that it is taken as a view of
  std::optional<uint32_t> memory;   // number of the memory
  bool operator==(const Placement&) const = default;
};

/// A stretch of storage, as a flat tensor.
struct MemorySpan {
  uint32_t anchor = 0;  // the input through which the storage is found
  TensorType type;      // one-dimensional and dense
  /// In elements of `type`, from the anchor's offset on; from the start of the storage if the whole
  /// of it is taken.
  int64_t start = 0;
  bool is_whole_storage = false;
  bool operator==(const MemorySpan&) const = default;
};

struct Arrangement {
  std::vector<Placement> inputs;  // by number of the facts; fewer: the rest lie alone
  std::vector<MemorySpan> memories;

  Placement of(uint32_t input) const { return input < inputs.size() ? inputs[input] : Placement(); }
  /// Whether some input is taken as a view of this one.
  bool is_base(uint32_t input) const {
    for (const Placement& placement : inputs) {
      if (placement.view_of == input) return true;
    }
    return false;
  }
  bool operator==(const Arrangement&) const = default;
};

}  // namespace foregrad
