// One compiled form of a function: valid where its guards hold.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/metadata.h"
#include "runtime/call_nodes.h"

namespace foregrad {

/// Returns the inputs in the order of `InputIndex`: the arguments, then the lifted tensors. A
/// tensor that is passed twice is one input, an undefined one is none.
std::vector<at::Tensor> distinct_inputs(std::span<const at::Tensor* const> arguments,
                                        std::span<const at::Tensor> lifted);

/// What a specialisation is made of.
struct SpecialisationParts {
  ViewAndMutationMeta meta;
  Graph forward;
  Executable run_forward{};  // the graph, compiled
  std::vector<at::Tensor> lifted;
  bool draws_random = false;  // forward draws from the default generator
  /// Saved values that may lie in the memory of an output of the graph, with its position.
  std::map<ValueId, size_t> saved_in_outputs{};
  /// Inputs that gradients of gradients may need and no backward saves.
  std::vector<InputIndex> kept_weakly{};
  /// Inputs that backward reads or writes as they are then.
  std::vector<InputIndex> late{};
  std::vector<NodeParts> nodes;  // those that others lead to come first
};

/// Runs the compiled forward and leaves what eager would have left. A call that throws has written
/// nothing.
class Specialisation {
 public:
  explicit Specialisation(SpecialisationParts parts);

  /// Returns the tensors of the function's result, in order. May be called from several threads.
  std::vector<at::Tensor> run(std::span<const at::Tensor* const> arguments);

 private:
  /// An output of the forward graph that is saved for backward.
  struct SavedOutput {
    SavedResult result;
    bool is_moved = false;  // an input or a base whose sizes or storage the call changes
    std::optional<InputIndex> written_back;  // the input that holds the value after the call
  };

  std::vector<at::Tensor> run_forward(const std::vector<at::Tensor>& inputs) const;
  void finish_new_tensors(std::span<const at::Tensor> outputs) const;
  void save(size_t part, const c10::intrusive_ptr<BackwardNode>& node,
            std::span<const at::Tensor> slots, std::span<const at::Tensor> results) const;

  SpecialisationParts parts_;
  std::vector<InputIndex> graph_inputs_;
  std::vector<SavedOutput> saved_;
};

}  // namespace foregrad
