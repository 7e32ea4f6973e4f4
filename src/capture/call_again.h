// Calls a recorded operator again, on the tensors of a replay.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "graph/recording.h"

namespace foregrad {

/// Calls the operator under the modes that it was recorded under and puts its results among
/// `values`, which are numbered as the recording's. Returns the fold of what autograd knew of the
/// arguments, as `RecordedOp::history`.
uint64_t call_again(const RecordedOp& op, std::vector<at::Tensor>& values);

/// The same for an operator of a backward: it runs with grad mode only if the backward does, and
/// casts as that does, unless it was recorded under an autocast of its own.
void call_in_backward(const RecordedOp& op, std::vector<at::Tensor>& values);

}  // namespace foregrad
