// After the compiled forward: writes inputs back and brings about the effects.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/node.h>

#include <functional>
#include <span>
#include <vector>

#include "graph/metadata.h"

namespace foregrad {

/// Returns the inputs that are found through others, view bases and memories, behind `inputs`,
/// which are the arguments and the captured tensors.
void append_found_inputs(const ViewAndMutationMeta& meta, std::vector<at::Tensor>& inputs);

/// The storages that a call resizes, of the inputs as they are before it.
class StorageResizes {
 public:
  StorageResizes(const ViewAndMutationMeta& meta, std::span<const at::Tensor> inputs);
  /// Before inputs are written back.
  void grow() const;
  /// After the effects.
  void shrink() const;

 private:
  struct Resize {
    c10::Storage storage;
    size_t bytes = 0;
  };
  std::vector<Resize> resizes_;
};

/// Writes the value that input `index` has after the call into the caller's tensors: into the
/// input, or into those of its parts that were written. Autograd and versions see nothing of it.
void write_back(const ViewAndMutationMeta& meta, InputIndex index,
                std::span<const at::Tensor> inputs, const at::Tensor& updated);

/// Gives where the history of a tensor, known by its role, is to begin.
using HistorySource =
    std::function<torch::autograd::Edge(const Differentiable& role, const at::Tensor& tensor)>;

/// Brings about the effects in order. `slots` are given for inputs and computed bases and filled in
/// for the others. What `history` gives becomes the history where the effects say so.
void bring_about(const ViewAndMutationMeta& meta, std::vector<at::Tensor>& slots,
                 const HistorySource& history);

/// Takes the outputs that the graph does not compute from the caller's tensors and the slots.
void take_aliases(const ViewAndMutationMeta& meta, std::span<const at::Tensor> slots,
                  std::vector<at::Tensor>& outputs);

}  // namespace foregrad
