// Collects what reaches the trace key on this thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <map>
#include <set>
#include <string>

#include "graph/backend.h"
#include "graph/graph.h"

namespace foregrad {

/// One trace: the graph under construction. Operators below autograd and functionalization arrive
/// one by one.
class Tracer {
 public:
  enum class Keep {
    Nodes,       // build the graph
    ShapesOnly,  // follow shapes and aliasing, number the values, keep no nodes
  };
  /// `decompositions` must outlive it.
  explicit Tracer(Keep keep, const Decompositions* decompositions = nullptr);

  /// Returns the trace of this thread, null if there is none.
  static Tracer* current();

  /// Makes the stand-in for an input of the graph: a trace tensor of the given type.
  at::Tensor make_input(const TensorType& type, const InputRole& role);

  /// Marks the nodes that follow.
  void set_phase(Phase phase) { phase_ = phase; }

  bool keeps_nodes() const { return keeps_nodes_; }
  Graph& graph() { return graph_; }

  /// How often each operator's shape came from its real kernel.
  const std::map<std::string, uint32_t>& last_resort_shapes() const { return last_resort_shapes_; }

  // ---- for the trace key's handler
  /// Takes the operator apart if there is a decomposition of it: replaces its arguments on the
  /// stack by its results. Says whether it did. An operator that its own decomposition calls is
  /// none.
  bool decompose(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  at::Tensor define(at::Tensor meta);
  void append(Node node);
  void count_last_resort(const c10::OperatorHandle& op);

  /// Makes a trace the thread's while it lives; nests.
  class Scope {
   public:
    explicit Scope(Tracer& tracer);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    Tracer* previous_;
  };

 private:
  Graph graph_;
  uint32_t value_count_ = 0;
  Phase phase_ = Phase::Forward;
  bool keeps_nodes_;
  const Decompositions* decompositions_;
  std::set<std::string> decomposed_;  // those that are being taken apart
  std::map<std::string, uint32_t> last_resort_shapes_;
};

}  // namespace foregrad
