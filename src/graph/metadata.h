// View and mutation metadata: what a call does to its inputs, and what its outputs are.
//
// Two lists, and nothing beside them that can be derived from them. A third fact about an input or
// output is a member of its own entry, so that no two lists must agree on an order.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/effects.h"
#include "graph/graph.h"
#include "graph/recording.h"

namespace foregrad {

/// What a call leaves behind in one input.
struct InputInfo {
  TensorType type{};           // before the call
  TensorType after{};          // its offset counts as `type`'s
  bool requires_grad = false;  // before the call
  bool is_leaf = true;
  bool data_mutated = false;
  bool metadata_mutated = false;  // sizes, strides or offset differ after the call
  bool storage_changed = false;   // `set_`, or a resize
  /// Autograd's history of it, or of its base, is as before: every write went through `detach()` or
  /// under no-grad or inference mode.
  bool hidden_from_autograd = false;
  bool requires_grad_after = false;
  bool is_leaf_after = true;
  uint32_t version_advance = 0;         // how often eager would have advanced the version counter
  std::optional<InputIndex> view_of{};  // the input that autograd knows as its base
  std::optional<InputIndex> memory{};   // the memory that it lies in
  InputIndex found_by{};                // of a view base or memory: the input that leads to it
  MemorySpan span{};                    // of a memory
  uint8_t creation_meta = 0;            // libtorch's, of a view
  uint32_t counter = 0;                 // the first input that shares its version counter
  uint32_t storage_before = 0;          // equal for inputs that share it
  uint32_t storage_after = 0;           // counts on with the outputs'
  std::optional<int64_t> resized_to{};  // bytes of the storage that it lay in, if changed
  /// A custom function's backward throws if it was written since, whether its gradients need it or
  /// not.
  bool is_checked = false;
  /// Of a base or memory: the inputs whose elements were written. None, though data is mutated: any
  /// element may have been.
  std::vector<InputIndex> written_parts{};
  bool retains_grad = false;  // the call has it retain its gradient

  /// The graph computes the elements that it has after the call.
  bool is_written_back() const { return data_mutated && !view_of && !memory; }
  bool is_graph_input() const { return !view_of && !memory; }
  /// Whether what backward reads of it is saved as the tensor itself.
  bool is_saved_itself() const {
    return is_graph_input() && version_advance == 0 && !is_checked && !type.is_conj && !type.is_neg;
  }
  /// A tensor that the caller holds, in memory of its own: what backward reads, or writes, of it is
  /// what it holds then.
  bool may_be_late() const { return is_graph_input() && span.type.sizes.empty(); }

  bool operator==(const InputInfo&) const = default;
};

/// The output is a tensor of its own.
struct NewTensor {
  bool operator==(const NewTensor&) const = default;
};
/// The output is the input itself, the same tensor object.
struct IsInput {
  InputIndex input;
  bool operator==(const IsInput&) const = default;
};
/// The output is the same tensor object as an earlier output.
struct SameAsOutput {
  OutputIndex output;
  bool operator==(const SameAsOutput&) const = default;
};
/// The output shares an input's memory: the effects make it from the caller's tensor.
struct ViewOfInput {
  InputIndex input;
  Slot slot;
  bool operator==(const ViewOfInput&) const = default;
};
/// The output is a base, or shares its memory: the effects make it.
struct ViewOfIntermediate {
  BaseIndex base;
  Slot slot;
  bool operator==(const ViewOfIntermediate&) const = default;
};
/// The function returned an undefined tensor.
struct UndefinedOutput {
  bool operator==(const UndefinedOutput&) const = default;
};

using OutputOrigin = std::variant<NewTensor, IsInput, SameAsOutput, ViewOfInput, ViewOfIntermediate,
                                  UndefinedOutput>;

struct OutputInfo {
  OutputOrigin origin;
  TensorType type;
  bool requires_grad = false;
  bool is_leaf = true;
  bool is_view = false;
  uint32_t version = 0;  // when the function returns it
  uint32_t storage = 0;  // equal for tensors that share it
  bool retains_grad = false;
  bool is_hidden = false;  // for hooks: it is not given to the caller

  /// The compiled graph computes it (it is not the caller's own tensor or a view of it).
  bool is_computed() const { return std::holds_alternative<NewTensor>(origin); }
  /// Backward takes a tangent for it.
  bool takes_tangent() const { return is_computed() && requires_grad && !is_leaf; }

  bool operator==(const OutputInfo&) const = default;
};

/// A tensor that outputs share memory with and that the call makes.
struct BaseInfo {
  ValueId value;  // in the recording
  Slot slot;
  uint32_t after_op = 0;  // of the recording: the one that made it
  bool is_computed =
      true;  // by the graph; otherwise the effects make it, and its history is its own
  bool operator==(const BaseInfo&) const = default;
};

/// A tensor that the call was given or gives.
using CallTensor = std::variant<InputIndex, OutputIndex>;

/// A hook on a tensor that the caller sees: the call registers it on that tensor.
struct VisibleHook {
  uint32_t hook = 0;  // of the recording
  CallTensor tensor;
  bool is_first = false;  // on the history that the tensor has before the effects
  std::shared_ptr<const RecordedNode> does{};
  std::vector<CallTensor> saved{};  // what it reads, entry by entry as recorded
  bool operator==(const VisibleHook&) const = default;
};

struct ViewAndMutationMeta {
  std::vector<InputInfo> inputs;    // by InputIndex
  std::vector<OutputInfo> outputs;  // by OutputIndex
  std::vector<BaseInfo> bases;      // by BaseIndex
  std::vector<Effect> effects;      // in eager's order
  std::vector<VisibleHook> hooks;   // in the order in which they are registered
  uint32_t slot_count = 0;          // of the effects

  /// The graph's outputs in order: updated inputs, then computed bases, then computed user outputs.
  std::vector<OutputRole> forward_outputs() const;
  /// The tensors that take a tangent, in the order in which they get the call as their history. The
  /// graph's other outputs are marked non-differentiable.
  std::vector<Differentiable> tangents() const;
  /// What the caller sees with a history that the call gives it, inputs and outputs, views among
  /// them; and leaves that the call makes.
  std::vector<Differentiable> visible() const;
  /// Whether the value that a mutated input had before the call is what its gradient belongs to.
  bool keeps_pre_mutation_value(InputIndex input) const;

  bool operator==(const ViewAndMutationMeta&) const = default;
};

/// Writes the metadata in words, one line for each input and output.
std::string to_text(const ViewAndMutationMeta& meta);

}  // namespace foregrad
