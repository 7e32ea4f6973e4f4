// Stand-ins: what the function sees in place of its inputs while it is traced.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "capture/tracer.h"
#include "graph/recording.h"

namespace foregrad {

/// Makes a functional wrapper over a trace tensor of the given type. It requires grad as said; one
/// that is not a leaf gets a gradient function of its own, so that in-place writes and `is_leaf`
/// behave as on the caller's tensor.
at::Tensor make_stand_in(Tracer& tracer, const TensorType& type, const InputRole& role,
                         bool requires_grad, bool is_leaf);

/// Makes a functional wrapper for a tangent.
at::Tensor make_tangent(Tracer& tracer, const TensorType& type, const Differentiable& of);

/// Returns the graph's value that a wrapper holds now, pending writes applied; nothing for
/// undefined tensors. Throws if the tensor holds no traced value.
std::optional<ValueId> traced_value(const at::Tensor& wrapper);

}  // namespace foregrad
