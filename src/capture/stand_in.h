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

/// Makes a stand-in that lies in the memory that `memory` stands for, unknown to autograd.
/// `offset`: of the first element, in elements of `type`, from the memory's start on.
at::Tensor place_in_memory(const at::Tensor& memory, const TensorType& type, int64_t offset,
                           bool requires_grad, bool is_leaf);

/// Makes a stand-in that is a view of another, as autograd knows, made as `creation_meta` says.
/// `offset`: of the first element, in elements of `type`, from the base's first element on.
at::Tensor place_as_view(const at::Tensor& base, const TensorType& type, int64_t offset,
                         uint8_t creation_meta);

/// Makes a functional wrapper for a tangent.
at::Tensor make_tangent(Tracer& tracer, const TensorType& type, const Differentiable& of);

/// Returns the graph's value that a wrapper holds now, pending writes applied; nothing for
/// undefined tensors. Throws if the tensor holds no traced value.
std::optional<ValueId> traced_value(const at::Tensor& wrapper);

/// Returns the graph's value of the whole memory of wrappers, as the tensor that owns it was made,
/// pending writes applied.
ValueId traced_memory(const c10::Storage& storage);

/// How a tensor lies in the memory that wrappers share.
struct MemoryView {
  c10::Storage storage;
  TensorType type;
  int64_t offset = 0;  // from the first element of the tensor that owns the memory
};
/// Returns how a wrapper lies in its memory now.
MemoryView memory_view(const at::Tensor& wrapper);
/// Returns the graph's value of what lies there, pending writes applied.
ValueId traced_value(const MemoryView& view);

}  // namespace foregrad
