// Compares what a caller can see after eager and compiled ran.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/fuzz/operation.h"

namespace foregrad::cli::fuzz {

/// One difference between eager and compiled.
struct Difference {
  std::string kind;    // what differs, of what: `version of an argument`
  std::string detail;  // which one, and how
  /// Only a version, a view's mark or the size of a storage differs: what hides no other
  /// difference.
  bool is_weak = false;
};

/// Tensors of one role that the caller can see, in the same order on both sides.
struct Seen {
  std::string role;  // `an output`
  Tensors tensors;
  /// Gradients may share memory with each other, autograd may have added into them in place, and
  /// its formulas work in place on plain tensors alone: memory, strides and lazy bits are not
  /// compared. Their elements may differ by eight units in the last place of the largest, since the
  /// order of sums is not defined.
  bool are_gradients = false;
};

/// Returns the first difference, a weak one only if there is no other: of each tensor, whether it
/// is there, type, sizes, strides, flags, elements, offset, version, size of its storage; of each
/// two, whether they are one tensor and whether they share storage. Elements are compared as bits,
/// but NaN equals NaN.
std::optional<Difference> first_difference(const std::vector<Seen>& eager,
                                           const std::vector<Seen>& compiled);

/// Tells whether two tensors of equal type, sizes and flags hold the same elements.
bool has_same_elements(const at::Tensor& a, const at::Tensor& b);

}  // namespace foregrad::cli::fuzz
