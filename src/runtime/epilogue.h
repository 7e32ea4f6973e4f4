// After the compiled forward: writes inputs back, regenerates outputs that alias inputs.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/node.h>

#include <span>
#include <vector>

#include "graph/metadata.h"

namespace foregrad {

/// Writes `updated` into the caller's tensor. Nothing of this is seen by autograd but the version,
/// which advances as often as it would have in eager; a tracked write gives the tensor `node` as
/// its history.
void write_back(const at::Tensor& input, const at::Tensor& updated, const InputInfo& info,
                const c10::intrusive_ptr<torch::autograd::Node>& node);

/// Makes the outputs that alias inputs, or other outputs, from the caller's tensors: the inputs
/// themselves, or views by replaying the recorded view operators. `outputs[i]` is given for
/// computed outputs and filled in for the others.
void regenerate_aliases(const ViewAndMutationMeta& meta, std::span<const at::Tensor> inputs,
                        std::vector<at::Tensor>& outputs);

}  // namespace foregrad
