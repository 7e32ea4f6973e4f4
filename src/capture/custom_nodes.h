// Autograd nodes that a function attaches to tensors itself, without an operator call: those of a
// custom `autograd::Function`. Their backwards are the user's code; each is run while the function
// is recorded, and what it calls is recorded too.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/node.h>

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "capture/input_table.h"
#include "capture/tracer.h"
#include "capture/value_table.h"
#include "graph/recording.h"

namespace foregrad {

class CustomNodes {
 public:
  CustomNodes(Recording& recording, Tracer& tracer, ValueTable& values, InputTable& inputs)
      : recording_(recording), tracer_(tracer), values_(values), inputs_(inputs) {}
  CustomNodes(const CustomNodes&) = delete;
  CustomNodes& operator=(const CustomNodes&) = delete;

  /// Records what happened to the tensor without an operator call: it became the result of a node,
  /// or its version was advanced.
  void note(const at::Tensor& tensor);

  /// Runs the backward of each node, for each set of tangents. Operators must be on their way to
  /// the recorder: they are put into the node instead of the recording. Throws `Refusal` for a
  /// backward that can't be recorded.
  void record_backwards();

 private:
  struct Found {
    c10::intrusive_ptr<torch::autograd::Node> node;
    std::shared_ptr<RecordedNode> recorded;
    std::unordered_map<uint32_t, uint32_t> values{};  // by ValueId: which result it became
    /// The results that tensors became: bit i says whether result i is one.
    uint32_t results() const;
  };
  /// A backward whose values are those of the recording.
  struct Run {
    RecordedBackward backward;
    std::vector<ValueId> tangents;
    uint32_t first_own_value = 0;  // those before it were there before
  };

  NodeResult result_of(const at::Tensor& tensor, ValueId value);
  uint32_t number(const c10::intrusive_ptr<torch::autograd::Node>& node);
  std::optional<ValueId> value_behind(const torch::autograd::Edge& edge);
  void record_backwards(const Found& found);
  torch::autograd::variable_list make_tangents(const Found& found, uint32_t defined);
  Run run(const Found& found, uint32_t defined_tangents);
  std::vector<std::optional<ValueId>> take_gradients(const Found& found,
                                                     torch::autograd::variable_list tangents);
  void undo_writes(const Found& found, Run& run);
  bool is_own(const Run& run, const at::Tensor& tensor) const;
  void find_checked(const Found& found);

  Recording& recording_;
  Tracer& tracer_;
  ValueTable& values_;
  InputTable& inputs_;
  std::vector<Found> found_;
  std::unordered_map<const torch::autograd::Node*, uint32_t> numbers_;
};

}  // namespace foregrad
