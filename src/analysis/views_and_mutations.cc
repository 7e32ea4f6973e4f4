// The plain cases: an input is written or not; an output is new, an input itself, a view of an
// input, or the same object as an earlier output. Everything else is refused here, in one place, so
// that nothing later can be silently wrong.
#include "analysis/views_and_mutations.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/refusal.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

InputInfo info_of(const RecordedInput& input, size_t index) {
  const InputObservation& seen = input.seen;
  if (seen.metadata_mutated || seen.storage_changed) {
    throw Refusal(
        fmt::format("input {}: the function changes its sizes, strides or storage, which is not "
                    "supported yet. Expected writes to "
                    "its data at most.",
                    index));
  }
  if (!seen.data_mutated && (!seen.hidden_from_autograd || seen.version_advance != 0)) {
    throw Refusal(fmt::format(
        "input {}: the function changes whether it requires grad, or its history, without writing "
        "it, which is not "
        "supported yet. Expected `requires_grad_` and `detach_` on tensors of the function's own.",
        index));
  }
  return {.type = seen.before,
          .requires_grad = seen.requires_grad_before,
          .is_leaf = seen.is_leaf,
          .data_mutated = seen.data_mutated,
          .metadata_mutated = false,
          .storage_changed = false,
          .hidden_from_autograd = seen.hidden_from_autograd,
          .requires_grad_after = seen.requires_grad_after,
          .version_advance = seen.version_advance};
}

/// The step that made `value`, if it is a view of another value: the operator that defined it and
/// the aliased argument.
std::optional<ViewStep> view_step_to(const Recording& recording, ValueId value) {
  for (const RecordedOp& op : recording.ops) {
    for (const AliasPair& pair : view_aliases(op.op)) {
      const Operand& result = op.results[pair.result];
      if (const auto* id = std::get_if<ValueId>(&result); id && *id == value) {
        return ViewStep{.op = op, .self_argument = pair.argument, .result = pair.result};
      }
      if (const auto* list = std::get_if<ValueList>(&result)) {
        auto entry = std::find(list->begin(), list->end(), std::optional(value));
        if (entry == list->end()) continue;
        return ViewStep{.op = op,
                        .self_argument = pair.argument,
                        .result = pair.result,
                        .element = static_cast<uint32_t>(entry - list->begin())};
      }
    }
  }
  return std::nullopt;
}

/// The view operators from the input to the value, in order; empty if an operator on the way isn't
/// declared as a view.
std::vector<ViewStep> chain_to(const Recording& recording, ValueId from, ValueId to) {
  std::vector<ViewStep> chain;
  while (to != from) {
    auto step = view_step_to(recording, to);
    const ValueId* source =
        step ? std::get_if<ValueId>(&step->op.args[step->self_argument]) : nullptr;
    if (!source || *source == to) return {};
    to = *source;
    chain.insert(chain.begin(), std::move(*step));
  }
  return chain;
}

OutputOrigin origin_of(const Recording& recording, size_t index) {
  const OutputObservation& seen = recording.outputs[index].seen;
  if (!seen.defined) return UndefinedOutput{};
  for (uint32_t i = 0; i < recording.inputs.size(); ++i) {
    const RecordedInput& input = recording.inputs[i];
    if (input.value == *seen.value) return IsInput{InputIndex{i}};
    if (input.seen.storage == seen.storage) {
      return ViewOfInput{InputIndex{i}, chain_to(recording, input.value, *seen.value)};
    }
  }
  for (uint32_t i = 0; i < index; ++i) {
    const OutputObservation& earlier = recording.outputs[i].seen;
    if (!earlier.defined) continue;
    if (earlier.value == seen.value) return SameAsOutput{OutputIndex{i}};
    if (earlier.storage == seen.storage) return ViewOfIntermediate{OutputIndex{i}};
  }
  return NewTensor{};
}

}  // namespace

ViewAndMutationMeta analyze_views_and_mutations(const Recording& recording) {
  ViewAndMutationMeta meta;
  for (size_t i = 0; i < recording.inputs.size(); ++i) {
    meta.inputs.push_back(info_of(recording.inputs[i], i));
  }
  for (size_t i = 0; i < recording.outputs.size(); ++i) {
    const OutputObservation& seen = recording.outputs[i].seen;
    OutputOrigin origin = origin_of(recording, i);
    if (std::holds_alternative<ViewOfIntermediate>(origin)) {
      throw Refusal(
          fmt::format("output {}: it shares memory with output {}, which is not supported yet. "
                      "Expected outputs that share no memory.",
                      i, std::get<ViewOfIntermediate>(origin).first.index));
    }
    meta.outputs.push_back(
        {.origin = std::move(origin), .type = seen.type, .requires_grad = seen.requires_grad});
  }
  return meta;
}

}  // namespace foregrad
