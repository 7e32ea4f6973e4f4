#include "capture/record_again.h"

#include <algorithm>
#include <unordered_set>

#include "capture/replayed_node.h"

namespace foregrad {

std::vector<at::Tensor> distinct_tensors(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> distinct;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second)
      distinct.push_back(tensor);
  }
  return distinct;
}

RecordResult record_again(const Recording& recording, RecordRequest request) {
  const std::vector<at::Tensor> arguments = distinct_tensors(request.arguments);
  ReplayedNodes nodes(recording);  // hooks are called after the run
  request.run = [&](const std::vector<at::Tensor>& stand_ins) {
    std::vector<at::Tensor> values(recording.value_count);
    for (size_t i = 0; i < recording.inputs.size(); ++i) {
      const RecordedInput& input = recording.inputs[i];
      if (std::holds_alternative<UserInput>(input.role)) {
        const auto place = std::ranges::find_if(request.arguments, [&](const at::Tensor& tensor) {
          return tensor.is_same(arguments[i]);
        });
        values[input.value.index] =
            stand_ins[static_cast<size_t>(place - request.arguments.begin())];
      } else if (std::holds_alternative<Lifted>(input.role)) {
        values[input.value.index] = input.tensor;  // the recorder knows it
      }
    }
    for (const RecordedInput& input : recording.inputs) {
      if (!input.view_of || !values[input.value.index].is_view()) continue;
      values[recording.inputs[input.view_of->index].value.index] =
          base_of(values[input.value.index]);
    }
    for (const RecordedOp& op : recording.ops) nodes.run(op, values);
    std::vector<at::Tensor> outputs;
    for (const RecordedOutput& output : recording.outputs)
      outputs.push_back(output.seen.defined ? values[output.seen.value->index] : at::Tensor());
    return outputs;
  };
  RecordResult result = record(request);
  result.recording.decompositions = recording.decompositions;
  // An argument that the function also captured arrives as a stand-in here.
  for (size_t i = 0; i < recording.inputs.size(); ++i) {
    const bool is_known = std::holds_alternative<UserInput>(recording.inputs[i].role) ||
                          std::holds_alternative<Lifted>(recording.inputs[i].role);
    if (!is_known) continue;
    result.recording.inputs[i].tensor = recording.inputs[i].tensor;
    // No operator resizes a storage.
    result.recording.inputs[i].seen.resized_to = recording.inputs[i].seen.resized_to;
  }
  return result;
}

}  // namespace foregrad
