// The autograd node of a compiled call: holds what forward saved, runs the compiled backward.
#pragma once

#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <vector>

#include "graph/graph.h"
#include "runtime/plan.h"

namespace foregrad {

/// Which tangents are defined, in the order of the graph's tangents.
using TangentMask = std::vector<bool>;

/// A backward compiled for one tangent mask: its graph takes saved values, then the tangents of the
/// mask.
struct Backward {
  Plan plan;
  std::vector<uint32_t> saved;       // which of the node's saved values it takes, in order
  std::vector<TensorType> tangents;  // those of the mask, as they were traced
};

/// Gives the backward for a mask, compiled on its first use. Lives as long as any call that may run
/// backward.
class BackwardSource {
 public:
  virtual ~BackwardSource() = default;
  virtual const Backward& backward_for(const TangentMask& mask) = 0;
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

  torch::autograd::variable_list apply(torch::autograd::variable_list&& tangents) override;
  std::string name() const override { return "ForegradBackward"; }
  void will_release_variables() override { releases_ = true; }

 private:
  std::shared_ptr<BackwardSource> source_;
  size_t tangent_count_;
  std::vector<torch::autograd::SavedVariable> saved_;
  bool releases_ = false;
};

}  // namespace foregrad
