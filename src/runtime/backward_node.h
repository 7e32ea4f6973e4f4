// The autograd node of a compiled call: holds what forward saved, runs the compiled backward.
#pragma once

#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "graph/effects.h"
#include "graph/graph.h"
#include "runtime/plan.h"

namespace foregrad {

/// Which tangents are defined, in the order of the graph's tangents, and the strides of those that
/// are: a gradient may be handed on as it came, so its strides show.
using TangentLayout = std::vector<std::optional<c10::DimVector>>;

/// A backward compiled for one layout: its graph takes saved values, then the tangents that are
/// defined.
struct Backward {
  Plan plan;
  std::vector<uint32_t> saved;       // which of the node's saved values it takes, in order
  std::vector<TensorType> tangents;  // those of the layout, as they were traced
  std::exception_ptr error{};        // what eager's backward throws; then nothing runs
  std::vector<Slot> unchanged{};     // tensors that must not have been written since the call
};

/// Gives the backward for a layout, compiled on its first use. Lives as long as any call that may
/// run backward.
class BackwardSource {
 public:
  virtual ~BackwardSource() = default;
  virtual const Backward& backward_for(const TangentLayout& layout) = 0;
};

/// Saves through `SavedVariable`, so that a write to what backward needs is the same error as in
/// eager, saved-tensor hooks run, and a second backward without `retain_graph` is the same error.
/// Saved values are freed at their last use in backward.
class BackwardNode final : public torch::autograd::Node {
 public:
  BackwardNode(std::shared_ptr<BackwardSource> source, size_t tangent_count)
      : source_(std::move(source)), tangent_count_(tangent_count) {}

  /// Saves a value, in the order of the backward graph's `Saved` inputs. `is_output`: it is an
  /// output of this node.
  void save(const at::Tensor& value, bool is_output) { saved_.emplace_back(value, is_output); }
  void reserve(size_t count) { saved_.reserve(count); }
  /// Notes the version of an input or a base that is not saved itself.
  void note_version(Slot slot, const at::Tensor& tensor);

  torch::autograd::variable_list apply(torch::autograd::variable_list&& tangents) override;
  std::string name() const override { return "ForegradBackward"; }
  void will_release_variables() override { releases_ = true; }

 private:
  std::shared_ptr<BackwardSource> source_;
  size_t tangent_count_;
  struct Version {
    Slot slot;
    c10::VariableVersion counter;
    uint32_t after_call = 0;
  };
  void check_unchanged(const std::vector<Slot>& slots) const;

  std::vector<torch::autograd::SavedVariable> saved_;
  std::vector<Version> versions_;
  bool releases_ = false;
};

}  // namespace foregrad
