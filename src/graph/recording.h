// A recording: the top-level operators that one run of the user's function called, above autograd,
// with the modes they ran under. Analysis, argument layers, joint graphs and tangent masks replay
// it; the user's code never runs again.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/AutogradState.h>

#include <compare>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "graph/arrangement.h"
#include "graph/backend.h"
#include "graph/graph.h"

namespace foregrad {

/// Whether operators cast their arguments first, and to what.
struct AutocastState {
  bool enabled = false;
  at::ScalarType dtype = at::kBFloat16;
  auto operator<=>(const AutocastState&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// The thread's modes that change what an operator means to autograd.
struct ModeState {
  bool grad_mode = true;
  bool inference_mode = false;
  bool autocast_enabled = false;
  at::ScalarType autocast_dtype = at::kBFloat16;
  bool operator==(const ModeState&) const = default;
};

/// What one operator did to a tensor that it was given to write.
struct RecordedWrite {
  ValueId value;                     // the tensor
  ValueId counter;                   // the first value that shares its version counter
  uint32_t version_advance = 0;      // of that counter
  std::optional<ValueId> rewritten;  // the tensor whose history autograd replaced: it, or its base
  bool has_history = false;          // that tensor, then
  bool data = false;     // it wrote elements, not only sizes, strides, history or storage
  bool storage = false;  // it gave the tensor another storage, or resized it
};

/// A result of an autograd node.
struct NodeResult {
  uint32_t node = 0;  // in `Recording::nodes`
  uint32_t result = 0;
  uint8_t creation_meta = 0;  // libtorch's, if the tensor is a view
  bool is_written = false;    // the tensor is one that the function was given, and wrote
  bool operator==(const NodeResult&) const = default;
};

/// One operator call. Its operands number the values of the recording.
struct RecordedOp {
  c10::OperatorHandle op;
  std::vector<Operand> args;
  std::vector<Operand> results;  // an in-place operator's result is the value that it wrote
  ModeState modes;
  /// What autograd knew of the tensors among the arguments when the operator was called, folded by
  /// `fold_history`.
  uint64_t history = 0;
  std::vector<RecordedWrite> writes{};
  /// If not, the function itself did something to the only result: it advanced its version, made it
  /// the result of an autograd node, or registered a hook on it.
  bool is_call = true;
  std::optional<NodeResult> attaches = std::nullopt;
  std::optional<uint32_t> hook = std::nullopt;  // in `Recording::hooks`
};

/// Folds what autograd knows of one more tensor into `history`: exact for the last 32 tensors,
/// which is enough to notice that a replay went another way.
void fold_history(uint64_t& history, const at::Tensor& tensor);

/// What the backward of an autograd node does with one set of tangents. It numbers its values by
/// itself: those that the node saved, the tangents that are defined, then what its operators give.
struct RecordedBackward {
  uint32_t value_count = 0;
  std::vector<RecordedOp> ops;
  std::vector<std::optional<ValueId>> gradients;  // by input of the node
  std::exception_ptr error;                       // what it throws instead
  bool writes = false;                            // tensors that it did not make
};

/// An autograd node that the function attached to tensors itself, as a custom
/// `autograd::Function` does.
struct RecordedNode {
  struct Result {
    at::ScalarType dtype = at::kFloat;
    c10::DimVector sizes;
  };
  struct SavedTensor {
    ValueId value;
    std::optional<uint32_t> result;  // which one of the node it is
    bool is_checked = false;         // backward throws if it was written since
  };
  std::vector<std::optional<ValueId>> inputs;  // where their histories lead
  std::vector<std::optional<Result>> results;  // those that are differentiable
  std::vector<SavedTensor> saved;
  /// By the set of tangents that are defined: bit i says whether result i has one.
  std::map<uint32_t, RecordedBackward> backwards;
};

/// A hook that the function registered on a tensor.
struct RecordedHook {
  ValueId value;  // the tensor
  /// The tensor is an input, and has the history that it came with.
  bool is_on_first_history = false;
  /// The tensor has the history that it still has after the run.
  bool is_on_last_history = false;
  /// One result, the tensor; one gradient, in place of the one that comes to it.
  std::shared_ptr<const RecordedNode> does;
};

/// What was seen of an input after the run.
struct InputObservation {
  TensorType before;
  TensorType after;
  int64_t storage_bytes = 0;  // of the storage that it lies in
  int64_t traced_offset = 0;  // the stand-in's storage offset before the run
  bool requires_grad_before = false;
  bool requires_grad_after = false;
  bool is_leaf = true;
  bool is_leaf_after = true;
  bool is_view = false;
  bool data_mutated = false;
  bool storage_changed = false;
  bool same_history = true;      // autograd replaced neither its history nor its base's
  uint32_t version_advance = 0;  // of the stand-in's counter, which others may share
  ValueId counter;               // the first value that shares the counter
  uint32_t storage_before = 0;  // equal for tensors that share storage, in the order of first sight
  uint32_t storage_after = 0;
  std::optional<int64_t> resized_to = std::nullopt;  // bytes of its first storage, if changed
  bool retains_grad = false;                         // the function called `retain_grad`
};

/// What was seen of an output after the run.
struct OutputObservation {
  bool defined = false;
  TensorType type;
  bool requires_grad = false;
  bool is_leaf = true;
  bool is_view = false;
  uint32_t storage = 0;          // as `InputObservation::storage_after`
  std::optional<ValueId> value;  // in the recording
  uint32_t version = 0;
  bool retains_grad = false;  // the function called `retain_grad`
};

struct RecordedInput {
  ValueId value;
  at::Tensor tensor;  // held if the function reached it by capture, an argument too; else undefined
  InputRole role;     // UserInput, Lifted, ViewBase or Memory
  InputObservation seen;
  std::optional<InputIndex> view_of = std::nullopt;  // `Placement::view_of`
  std::optional<InputIndex> memory = std::nullopt;   // `Placement::memory`
  uint8_t creation_meta = 0;                         // libtorch's, of a view
  InputIndex found_by{};  // of a view base or memory: the input through which it is found
  MemorySpan span{};      // of a memory
};

struct RecordedOutput {
  OutputObservation seen;
  bool is_hidden = false;  // it is for hooks, and not the caller's
};

struct Recording {
  uint32_t value_count = 0;
  /// The user's first, then lifted ones in the order of their first use, then view bases and
  /// memories.
  std::vector<RecordedInput> inputs;
  std::vector<RecordedOp> ops;
  std::vector<std::shared_ptr<const RecordedNode>> nodes{};
  std::vector<RecordedHook> hooks{};  // those that a backward may come to
  /// The tensors that hooks are on or read, but for inputs.
  std::map<ValueId, OutputObservation> hooked{};
  std::vector<RecordedOutput> outputs;
  at::ScalarType default_dtype = at::kFloat;
  std::shared_ptr<const Decompositions> decompositions{};  // that replays apply
  /// Views, as autograd knows, and their bases. A base that no operator gave is one that an
  /// operator made inside.
  std::map<ValueId, ValueId> view_bases{};
  std::map<ValueId, ValueId> counters{};  // values that share an earlier value's version counter
  std::map<ValueId, uint32_t> first_versions{};  // of values that operators gave, if not 0
  /// By ValueId: a tensor that is no view and has a `grad_fn` when it is first seen.
  std::vector<bool> starts_with_history{};
};

/// Returns the place of the first operator at which two recordings differ, nothing if they are the
/// same program.
std::optional<size_t> first_difference(const Recording& left, const Recording& right);

/// Writes one recorded operator for messages, for example `aten::mul.Tensor(%0, %1)`.
std::string to_text(const RecordedOp& op);

}  // namespace foregrad
