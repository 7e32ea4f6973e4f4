// Whether the effects of a call leave what eager was seen to leave.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "graph/metadata.h"

namespace foregrad {

/// Brings the effects about on tensors without data that lie as the inputs do, and compares what
/// they leave with the metadata: sizes, strides, offsets, flags, versions, and who shares storage
/// with whom. `base_types`: of the computed bases, by BaseIndex. Returns the first difference in
/// words, nothing if there is none.
std::optional<std::string> rehearse(const ViewAndMutationMeta& meta,
                                    std::span<const TensorType> base_types);

}  // namespace foregrad
