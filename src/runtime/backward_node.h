// The autograd node of a compiled call: holds what forward saved, runs the compiled backward.
#pragma once

#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/backend.h"
#include "graph/effects.h"
#include "graph/graph.h"
#include "graph/recording.h"

namespace foregrad {

/// What a backward is compiled for.
struct TangentLayout {
  /// Of the tangents that are defined, in the order of the graph's tangents: a gradient may be
  /// handed on as it came, so its strides show.
  std::vector<std::optional<c10::DimVector>> strides;
  AutocastState autocast{};                                // under which backward runs
  auto operator<=>(const TangentLayout&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// A backward compiled for one layout: its graph takes saved values, then the tangents that are
/// defined.
struct Backward {
  Executable run;
  std::vector<uint32_t> saved;       // which of the node's saved values it takes, in order
  std::vector<TensorType> tangents;  // those of the layout, as they were traced
  /// An input of the call that it reads as it is then; after the tangents.
  struct Late {
    InputIndex input;
    TensorType type;
  };
  std::vector<Late> late{};
  /// What it writes besides; their values are the last outputs.
  struct Write {
    std::optional<InputIndex> input;  // one of the node's late tensors
    std::optional<uint32_t> tangent;  // or a tangent, among those that are defined
    uint32_t version_advance = 0;
  };
  std::vector<Write> writes{};
  std::exception_ptr error{};     // what eager's backward throws; then nothing runs
  std::vector<Slot> unchanged{};  // tensors that must not have been written since the call
};

/// A result of a graph that is saved for a backward.
struct SavedResult {
  size_t position = 0;                // among the graph's outputs
  bool is_output = false;             // it gets the node as its history too
  std::optional<size_t> in_output{};  // position of an output whose memory it may lie in
};

class BackwardSource;

/// A backward compiled for one layout whose gradients can be differentiated again.
struct DifferentiableBackward {
  /// From saved values and tangents, as `Backward`, to a gradient for each edge of the node, then
  /// what the next node saves.
  Backward backward{};
  /// The gradients that get the next node as their history, in the order of its tangents.
  std::vector<uint32_t> differentiable{};
  std::vector<SavedResult> saved{};  // by the next node
  struct EdgeOf {
    enum Kind : uint8_t {
      Edge,     // that edge of this node
      Output,   // to this node, for that output
      Tangent,  // to where that tangent, of those that are defined, has its history from
    };
    Kind kind = Edge;
    uint32_t index = 0;
  };
  std::vector<EdgeOf> edges{};             // of the next node
  std::shared_ptr<BackwardSource> next{};  // its backwards
  std::string refusal{};  // why the gradients can't be differentiated; then there is nothing else
};

/// Gives the backward for a layout, compiled on its first use. Lives as long as any call that may
/// run backward.
class BackwardSource {
 public:
  virtual ~BackwardSource() = default;
  virtual const Backward& backward_for(const TangentLayout& layout) = 0;
  /// `requires_grad`: which of the tangents do.
  virtual const DifferentiableBackward& differentiable_for(
      const TangentLayout& layout, const std::vector<bool>& requires_grad) = 0;
};

/// Stands between a result and a node with several results: hooks on a result are called when a
/// gradient comes to it, and it may get another history, as with eager's nodes of one result.
struct ResultNode final : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    return std::move(grads);
  }
  std::string name() const override { return "ForegradBackward"; }
};

/// Saves through `SavedVariable`, so that a write to what backward needs is the same error as in
/// eager, saved-tensor hooks run, and a second backward without `retain_graph` is the same error.
/// Saved values are freed at their last use in backward.
class BackwardNode final : public torch::autograd::Node {
 public:
  /// `autocast`: what backward runs under; nothing: what it is called under.
  BackwardNode(std::shared_ptr<BackwardSource> source, size_t tangent_count,
               std::optional<AutocastState> autocast = std::nullopt)
      : source_(std::move(source)), tangent_count_(tangent_count), autocast_(autocast) {}

  /// Saves a value, in the order of the backward graph's `Saved` inputs. `is_output`: it is an
  /// output of this node.
  void save(const at::Tensor& value, bool is_output) { saved_.emplace_back(value, is_output); }
  /// Adds a result: returns where its history is to begin. `is_only`: there is no other.
  torch::autograd::Edge enter(const at::Tensor& result, bool is_only);
  /// Whether the tensor's history begins here, or at a `ResultNode` before.
  bool is_history_of(const at::Tensor& tensor) const;
  /// Saves a result of a graph.
  void save(std::span<const at::Tensor> results, const SavedResult& saved);
  void reserve(size_t count) { saved_.reserve(count); }
  /// Notes an input that is not saved, for gradients of gradients to find if the caller still holds
  /// it. Numbered on from the saved values.
  void keep_weakly(const at::Tensor& input);
  /// Holds an input that backward reads or writes as it is then.
  void keep_late(InputIndex input, const at::Tensor& tensor) { late_.emplace(input, tensor); }
  /// Notes the version of an input or a base that is not saved itself.
  void note_version(Slot slot, const at::Tensor& tensor);

  torch::autograd::variable_list apply(torch::autograd::variable_list&& tangents) override;
  std::string name() const override { return "ForegradBackward"; }
  void will_release_variables() override { releases_ = true; }

 private:
  using Tensors = torch::autograd::variable_list;
  struct Version {
    Slot slot;
    c10::VariableVersion counter;
    uint32_t after_call = 0;
  };

  Tensors differentiate(Tensors&& tangents, TangentLayout layout);
  Tensors differentiate_again(Tensors&& tangents, const DifferentiableBackward& backward);
  Tensors take_inputs(const Backward& backward, Tensors&& tangents);
  at::Tensor take_saved(uint32_t index);
  const at::Tensor& late_tensor(const Backward::Late& late) const;
  Tensors run(const Backward& backward, Tensors&& tangents);
  void check_unchanged(const std::vector<Slot>& slots) const;
  torch::autograd::Edge edge_to(uint32_t result);

  std::shared_ptr<BackwardSource> source_;
  size_t tangent_count_;
  std::optional<AutocastState> autocast_;
  /// Of several results, as long as somebody holds them; they hold this node.
  std::vector<c10::weak_intrusive_ptr<torch::autograd::Node>> results_;
  std::vector<torch::autograd::SavedVariable> saved_;
  struct WeakInput {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
    uint32_t version = 0;
  };
  std::vector<WeakInput> weak_;
  std::vector<Version> versions_;
  std::map<InputIndex, at::Tensor> late_;
  bool releases_ = false;
};

}  // namespace foregrad
