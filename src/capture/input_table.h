// The inputs of a recording under construction, and the stand-ins that the function sees in their
// place.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/input_facts.h"
#include "capture/outside_state.h"
#include "capture/tracer.h"
#include "capture/value_table.h"
#include "graph/recording.h"

namespace foregrad {

/// Throws `Refusal` for a tensor that can't be an input of a call in inference mode, or outside of
/// it. `where` begins the message.
void refuse_unsupported_tensor(const at::Tensor& tensor, bool in_inference_mode,
                               const std::string& where);

/// Returns where the tensor's history begins; empty if it requires no grad.
torch::autograd::Edge history_of(const at::Tensor& tensor);

class InputTable {
 public:
  InputTable(Tracer& tracer, ValueTable& values) : tracer_(tracer), values_(values) {}
  InputTable(const InputTable&) = delete;
  InputTable& operator=(const InputTable&) = delete;

  /// Makes the stand-ins of the inputs that are known. The first `argument_count` of them are
  /// arguments.
  void place(const InputSet& inputs, const Arrangement& arrangement, size_t argument_count);
  /// Makes the stand-in of a captured tensor, or returns the one it has. It must be supported.
  at::Tensor capture(const at::Tensor& tensor);
  bool is_known(const at::Tensor& tensor) const {
    return by_tensor_.contains(tensor.unsafeGetTensorImpl());
  }
  at::Tensor stand_in_of(const at::Tensor& argument) const {
    return argument.defined() ? inputs_[by_tensor_.at(argument.unsafeGetTensorImpl())].stand_in
                              : argument;
  }

  std::vector<at::Tensor> stand_ins() const;
  /// Returns the history that an input came with, empty for one that requires no grad; nothing if
  /// the tensor is not the stand-in of one.
  std::optional<torch::autograd::Edge> first_history(const at::Tensor& stand_in) const;

  /// Follows declared views from inputs on.
  void note_views(const RecordedOp& op);
  /// Notes which inputs' elements were written: the one whose memory the value lies in; if that is
  /// not known, each in the storage.
  void note_data(ValueId value, const c10::StorageImpl& storage);
  /// Whether writes are noted: those of a custom function's backward are not.
  void note_writes(bool flag) { notes_writes_ = flag; }
  /// Whether the value is an input that lies in memory of its own.
  bool is_whole_input(ValueId value) const;
  /// Notes that the tensor was given another storage, or was resized.
  void note_other_storage(ValueId value, const at::Tensor& tensor);

  /// What the function does to these outside of operator calls.
  TensorWatch& watch() { return watch_; }
  uint32_t storage_number(const c10::Storage& storage);
  /// Says what became of the inputs: arguments, captured tensors, view bases, memories.
  std::vector<RecordedInput> finish();

 private:
  /// An input, in the order in which the recorder met it.
  struct Input {
    at::Tensor real{};  // undefined: a memory
    at::Tensor stand_in;
    InputRole role;
    torch::autograd::Edge edge{};  // where its history begins; empty if it requires no grad
    std::optional<size_t> view_of{};
    std::optional<size_t> memory{};
    size_t found_by = 0;
    MemorySpan span{};
    TensorType type;
    int64_t traced_offset = 0;
    c10::Storage first_storage{};  // the functional storage that it lay in first
    size_t order = SIZE_MAX;       // among inputs of its kind; those that are found late come last
    size_t storage_bytes = 0;      // of `first_storage`
    bool is_named = false;         // an operator got the caller's tensor itself
    bool is_written = false;
    bool storage_changed = false;
  };

  size_t add(Input input);
  void place_one(const InputSet& inputs, const Arrangement& arrangement, uint32_t number,
                 const InputRole& role);
  void share_counter(const at::Tensor& real, const at::Tensor& stand_in);
  InputObservation observe(const Input& input);

  Tracer& tracer_;
  ValueTable& values_;
  std::vector<Input> inputs_;
  TensorWatch watch_;
  bool notes_writes_ = true;
  std::unordered_map<const c10::TensorImpl*, size_t> by_tensor_;  // the real one
  std::unordered_map<uint32_t, size_t> origins_;  // values in the memory of an input, and which
  std::unordered_map<const void*, at::Tensor> real_counters_;  // a stand-in with that counter
  std::unordered_map<const c10::StorageImpl*, uint32_t> storage_numbers_;
};

}  // namespace foregrad
