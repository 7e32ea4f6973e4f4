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

#include "capture/backward_recorder.h"
#include "capture/input_table.h"
#include "capture/value_table.h"
#include "graph/recording.h"

namespace foregrad {

class CustomNodes {
 public:
  CustomNodes(Recording& recording, ValueTable& values, InputTable& inputs,
              BackwardRecorder& backwards)
      : recording_(recording), values_(values), inputs_(inputs), backwards_(backwards) {}
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
  };

  NodeResult result_of(const at::Tensor& tensor, ValueId value);
  uint32_t number(const c10::intrusive_ptr<torch::autograd::Node>& node);
  std::optional<ValueId> value_behind(const torch::autograd::Edge& edge);

  Recording& recording_;
  ValueTable& values_;
  InputTable& inputs_;
  BackwardRecorder& backwards_;
  std::vector<Found> found_;
  std::unordered_map<const torch::autograd::Node*, uint32_t> numbers_;
};

}  // namespace foregrad
