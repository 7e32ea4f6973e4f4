// Which bytes of a storage a tensor touches.
#pragma once

#include <cstdint>

#include "graph/tensor_type.h"

namespace foregrad {

/// Bytes from the start of the storage: the first that a tensor touches, and the one after its
/// last.
struct ByteExtent {
  int64_t begin = 0;
  int64_t end = 0;
};
ByteExtent extent_of(const TensorType& type);

/// Whether two tensors over one storage have a byte in common. Exact for tensors of up to 65,536
/// elements; may say yes of larger ones that interleave.
bool overlaps(const TensorType& left, const TensorType& right);

/// Whether a tensor has several elements in one place, as an expanded one has.
bool overlaps_itself(const TensorType& type);

}  // namespace foregrad
