// Records a recorded function again, with its inputs lying otherwise.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "capture/recorder.h"

namespace foregrad {

/// Records a recorded function again without calling it, from its operators. `request.run` is not
/// used; `request.captured` must be the tensors that the recording lifted.
RecordResult record_again(const Recording& recording, RecordRequest request);

/// Returns the tensors that are defined, each once, in order.
std::vector<at::Tensor> distinct_tensors(const std::vector<at::Tensor>& tensors);

}  // namespace foregrad
