// After the compiled forward: writes inputs back and brings about the effects.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/node.h>

#include <span>
#include <vector>

#include "graph/metadata.h"

namespace foregrad {

/// Returns the inputs that are found through others, view bases and memories, behind `inputs`,
/// which are the arguments and the captured tensors.
void append_found_inputs(const ViewAndMutationMeta& meta, std::vector<at::Tensor>& inputs);

/// Writes the value that input `index` has after the call into the caller's tensors: into the
/// input, or into those of its parts that were written. Autograd and versions see nothing of it.
void write_back(const ViewAndMutationMeta& meta, InputIndex index,
                std::span<const at::Tensor> inputs, const at::Tensor& updated);

/// Brings about the effects in order. `slots` are given for inputs and computed bases and filled in
/// for the others. `node` becomes the history where the effects say so.
void bring_about(const ViewAndMutationMeta& meta, std::vector<at::Tensor>& slots,
                 const c10::intrusive_ptr<torch::autograd::Node>& node);

/// Takes the outputs that the graph does not compute from the caller's tensors and the slots.
void take_aliases(const ViewAndMutationMeta& meta, std::span<const at::Tensor> slots,
                  std::vector<at::Tensor>& outputs);

}  // namespace foregrad
