// Hooks that a function registers on the tensors inside it. They are the user's code; each that a
// backward may come to is run while the function is recorded, and what it calls is recorded too.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/cpp_hook.h>
#include <torch/csrc/autograd/edge.h>

#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "capture/backward_recorder.h"
#include "capture/input_table.h"
#include "capture/value_table.h"
#include "graph/recording.h"

namespace foregrad {

class Hooks {
 public:
  Hooks(Recording& recording, ValueTable& values, InputTable& inputs, BackwardRecorder& backwards)
      : recording_(recording), values_(values), inputs_(inputs), backwards_(backwards) {}
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  /// Records the hooks that were registered on the tensor since it was last noted. To be called
  /// before its history changes. Throws `Refusal` for a hook that would stay on the caller's leaf.
  void note(const at::Tensor& tensor);
  /// The same for each tensor in the storage.
  void note_all(const c10::StorageImpl* storage);

  /// To be called when all are noted, for what the function gives back. Runs the hooks that a
  /// backward may come to and takes the others out of the recording. Operators must be on their way
  /// to the recorder. Throws `Refusal` for hooks of other kinds.
  void record(const std::vector<at::Tensor>& outputs);

  /// The tensors that the hooks are on or read.
  std::vector<ValueId> tensors() const;

 private:
  using List = std::shared_ptr<torch::autograd::hooks_list>;
  using Nodes = std::unordered_set<const torch::autograd::Node*>;
  struct Found {
    ValueId value;
    List list;
    size_t place = 0;  // in the list
    torch::autograd::Edge edge{};
    std::optional<RecordedHook> recorded{};  // if a backward may come to it
  };

  bool is_noted(const at::Tensor& tensor) const;
  Nodes find_nodes(const std::vector<at::Tensor>& outputs) const;
  void refuse_other_hooks(const Nodes& nodes) const;
  RecordedHook record(const Found& found);
  void keep_in_recording(const std::vector<std::optional<uint32_t>>& numbers);

  Recording& recording_;
  ValueTable& values_;
  InputTable& inputs_;
  BackwardRecorder& backwards_;
  std::vector<Found> found_;
  std::unordered_map<const void*, size_t> noted_;  // by list: how many
};

}  // namespace foregrad
