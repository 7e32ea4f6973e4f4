// Memory variants: in-place operators as functions of the memory that they write.
//
// What an in-place operator leaves may depend on how its tensor lies: random numbers are drawn in
// the order of the memory, and where elements share memory the last write stays. The functional
// operator that functionalization takes in its place knows nothing of that. The memory variant of
// `aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)` is
// `foregrad_memory::add_.Tensor(Tensor memory, Tensor self, Tensor other, *, Scalar alpha=1) ->
// Tensor`: it copies the memory, calls the in-place operator with all tensors that lie in the
// memory moved to the copy, and gives the copy.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace foregrad {

/// Returns the memory variant of an operator that writes its first argument, one tensor, and no
/// other; nothing for other operators. Defined once in a process, for all operators at once, by the
/// first call. Calling it throws what the in-place operator throws, and `c10::Error` if a tensor
/// lies in part in the memory.
std::optional<c10::OperatorHandle> memory_variant(const c10::OperatorHandle& op);

/// Whether the operator is one.
bool is_memory_variant(const c10::OperatorHandle& op);

}  // namespace foregrad
