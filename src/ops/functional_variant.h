// Functional variants: for an operator of a user's library that writes arguments, an operator that
// runs it on copies of them and gives these too. Libtorch functionalizes its own operators; of
// others it knows no functional form.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace foregrad {

struct FunctionalVariant {
  /// Of the same arguments; gives the results that are no argument, then the written arguments.
  c10::OperatorHandle op;
  std::vector<size_t> written;  // the arguments that it copies, in order
  /// For each result of the operator, the written argument that it is; -1 if it is none.
  std::vector<int64_t> result_is;
};

/// Whether the operator writes arguments, and its results are new tensors or such arguments. What
/// else it does must be in its schema.
bool has_functional_variant(const c10::OperatorHandle& op);

/// Returns the variant, defined on first use. Throws `c10::Error` if there is none.
const FunctionalVariant& functional_variant(const c10::OperatorHandle& op);

}  // namespace foregrad
