// A recording: the top-level operators that one run of the user's function called, above autograd,
// with the modes they ran under. Analysis, argument layers, joint graphs and tangent masks replay
// it; the user's code never runs again.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/AutogradState.h>

#include <optional>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace foregrad {

/// The thread's modes that change what an operator means to autograd.
struct ModeState {
  bool grad_mode = true;
  bool inference_mode = false;
  bool autocast_enabled = false;
  at::ScalarType autocast_dtype = at::kBFloat16;
  bool operator==(const ModeState&) const = default;
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
};

/// Folds what autograd knows of one more tensor into `history`: exact for the last 32 tensors,
/// which is enough to notice that a replay went another way.
void fold_history(uint64_t& history, const at::Tensor& tensor);

/// A view operator of the chain that leads from an input to an output: its argument `self_argument`
/// is the tensor.
struct ViewStep {
  RecordedOp op;
  uint32_t self_argument = 0;
  uint32_t result = 0;                             // which return of the schema
  std::optional<uint32_t> element = std::nullopt;  // which entry, if that return is a list
};

/// What was seen of an input after the run.
struct InputObservation {
  TensorType before;
  TensorType after;
  bool requires_grad_before = false;
  bool requires_grad_after = false;
  bool is_leaf = true;
  bool is_view = false;
  bool data_mutated = false;
  bool metadata_mutated = false;
  bool storage_changed = false;
  bool hidden_from_autograd = false;
  uint32_t version_advance = 0;
  size_t storage = 0;  // equal for tensors that share storage after the run
};

/// What was seen of an output after the run.
struct OutputObservation {
  bool defined = false;
  TensorType type;
  bool requires_grad = false;
  size_t storage = 0;            // equal for tensors that share storage after the run
  std::optional<ValueId> value;  // in the recording
  uint32_t version = 0;
};

struct RecordedInput {
  ValueId value;
  at::Tensor tensor;  // held if the function reached it by capture, an argument too; else undefined
  InputRole role;     // UserInput or Lifted
  InputObservation seen;
};

struct RecordedOutput {
  OutputObservation seen;
};

struct Recording {
  uint32_t value_count = 0;
  /// The user's first, then lifted ones in the order of their first use.
  std::vector<RecordedInput> inputs;
  std::vector<RecordedOp> ops;
  std::vector<RecordedOutput> outputs;
  at::ScalarType default_dtype = at::kFloat;
};

/// Returns the place of the first operator at which two recordings differ, nothing if they are the
/// same program.
std::optional<size_t> first_difference(const Recording& left, const Recording& right);

/// Writes one recorded operator for messages, for example `aten::mul.Tensor(%0, %1)`.
std::string to_text(const RecordedOp& op);

}  // namespace foregrad
