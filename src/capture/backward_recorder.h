// Records backwards that are the user's code: those of custom `autograd::Function`s, and hooks.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/input_table.h"
#include "capture/tracer.h"
#include "capture/value_table.h"
#include "graph/recording.h"

namespace foregrad {

/// A backward to be recorded.
struct UsersBackward {
  std::string what;                                 // in messages
  std::shared_ptr<RecordedNode> recorded{};         // with its results
  std::unordered_map<uint32_t, uint32_t> values{};  // by ValueId: which result it became
  std::function<torch::autograd::variable_list(torch::autograd::variable_list&&)> apply{};

  uint32_t may_be_defined = 0;  // bit i: whether result i may have a tangent
};

class BackwardRecorder {
 public:
  BackwardRecorder(Recording& recording, Tracer& tracer, ValueTable& values, InputTable& inputs)
      : recording_(recording), tracer_(tracer), values_(values), inputs_(inputs) {}
  BackwardRecorder(const BackwardRecorder&) = delete;
  BackwardRecorder& operator=(const BackwardRecorder&) = delete;

  /// Whether an autograd node checks the versions of what it saved is to be found out.
  enum class Saved { Checked, Unchecked };
  /// Runs the backward for each set of tangents and puts what it calls into `backward.recorded`.
  /// Operators must be on their way to the recorder: they are put there instead of into the
  /// recording. Throws `Refusal` for a backward that can't be recorded.
  void record(const UsersBackward& backward, Saved saved);

 private:
  /// A backward whose values are those of the recording.
  struct Run {
    RecordedBackward backward;
    std::vector<ValueId> tangents;
    uint32_t first_own_value = 0;  // those before it were there before
  };

  torch::autograd::variable_list make_tangents(const UsersBackward& backward, uint32_t defined);
  Run run(const UsersBackward& backward, uint32_t defined_tangents);
  std::vector<std::optional<ValueId>> take_gradients(const UsersBackward& backward,
                                                     torch::autograd::variable_list tangents);
  void undo_writes(const UsersBackward& backward, Run& run);
  bool is_own(const Run& run, const at::Tensor& tensor) const;
  void find_checked(const UsersBackward& backward);

  Recording& recording_;
  Tracer& tracer_;
  ValueTable& values_;
  InputTable& inputs_;
};

}  // namespace foregrad
