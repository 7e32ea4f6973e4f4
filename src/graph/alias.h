// Other ways to see the memory of a tensor.
#pragma once

#include <cstdint>

#include "graph/tensor_type.h"

namespace foregrad {

/// Returns a tensor of the given type over a storage, on the storage's device whatever the type's.
/// Unknown to autograd as a view.
at::Tensor tensor_over(const c10::Storage& storage, const TensorType& type);

/// Returns a view of the memory of `source` as a tensor of the given type. The offset counts from
/// the first element of `source`, in elements of `type`; the type's own is not read. A view to
/// autograd too, unless the caller runs below it. Throws `Refusal` if `source` has gaps and its
/// elements are of another width.
at::Tensor alias_of(const at::Tensor& source, const TensorType& type, int64_t offset);

/// The same, a view to autograd that is made as libtorch's creation meta says: under the grad mode
/// that it tells of, and marked so.
at::Tensor alias_of(const at::Tensor& source, const TensorType& type, int64_t offset,
                    uint8_t creation_meta);

/// Returns a copy of `source` in which that view has the elements of `value`.
at::Tensor alias_scatter(const at::Tensor& source, const at::Tensor& value, const TensorType& type,
                         int64_t offset);

/// Returns how far `inner` begins after `outer` in one storage, in elements of `inner`. Throws
/// `Refusal` if that is no whole number.
int64_t offset_between(const TensorType& outer, const TensorType& inner);

}  // namespace foregrad
