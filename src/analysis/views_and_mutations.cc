// The plain cases: an input is written or not; an output is new, an input itself, a view of an
// input, or the same object as an earlier output. Everything else is refused here, in one place, so
// that nothing later can be silently wrong.
#include "analysis/views_and_mutations.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "graph/refusal.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

bool overlaps_itself(const TensorType& type) {
  for (size_t d = 0; d < type.sizes.size(); ++d) {
    if (type.sizes[d] > 1 && type.strides[d] == 0) return true;
  }
  return false;
}

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
  if (seen.data_mutated && seen.is_view && !seen.hidden_from_autograd) {
    throw Refusal(
        fmt::format("input {}: the function writes it, it is a view, and autograd follows the "
                    "write, which is not supported yet. "
                    "Expected a tensor that is no view. Pass the base, or write under no-grad.",
                    index));
  }
  if (seen.data_mutated && overlaps_itself(seen.before)) {
    throw Refusal(
        fmt::format("input {}: the function writes it, and several of its elements share memory. "
                    "Expected a tensor that is not expanded.",
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

/// The view operators that made the values of a recording.
class ViewSteps {
 public:
  explicit ViewSteps(const Recording& recording)
      : recording_(recording),
        made_by_(recording.value_count),
        changed_in_place_(recording.value_count) {
    for (uint32_t i = 0; i < recording.ops.size(); ++i) {
      const RecordedOp& op = recording.ops[i];
      if (op.op.hasTag(at::Tag::inplace_view)) {
        for (const Operand& result : op.results) {
          for_each_value(result, [&](ValueId value) { changed_in_place_[value.index] = true; });
        }
      }
      for (const AliasPair& pair : view_aliases(op.op)) {
        const Operand& result = op.results[pair.result];
        if (const auto* value = std::get_if<ValueId>(&result)) {
          note(*value, {.op = i, .pair = pair, .element = std::nullopt});
        } else if (const auto* list = std::get_if<ValueList>(&result)) {
          for (uint32_t k = 0; k < list->size(); ++k) {
            if ((*list)[k]) note(*(*list)[k], {.op = i, .pair = pair, .element = k});
          }
        }
      }
    }
  }

  /// The view operators from one value to another, in order; empty if an operator on the way isn't
  /// declared as a view, or if a tensor on the way became another view in place.
  std::vector<ViewStep> chain(ValueId from, ValueId to) const {
    std::vector<ViewStep> chain;
    while (to != from) {
      const auto& place = made_by_.at(to.index);
      if (!place || changed_in_place_[to.index]) return {};
      const RecordedOp& op = recording_.ops[place->op];
      const auto* source = std::get_if<ValueId>(&op.args[place->pair.argument]);
      if (!source || *source == to) return {};
      chain.push_back({.op = op,
                       .self_argument = place->pair.argument,
                       .result = place->pair.result,
                       .element = place->element});
      to = *source;
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

 private:
  /// Where an operator gives a value that is a view of an argument.
  struct Place {
    uint32_t op = 0;
    AliasPair pair;
    std::optional<uint32_t> element;  // which entry, if the result is a list
  };

  /// The first operator that gives a value made it; later ones return it.
  void note(ValueId value, Place place) {
    auto& known = made_by_.at(value.index);
    if (!known) known = place;
  }

  const Recording& recording_;
  // By the recording's ValueId.
  std::vector<std::optional<Place>> made_by_;
  std::vector<bool> changed_in_place_;
};

/// Finds what each output is, given the inputs and the outputs before it.
class Origins {
 public:
  explicit Origins(const Recording& recording) : recording_(recording), views_(recording) {
    for (uint32_t i = 0; i < recording.inputs.size(); ++i) {
      input_of_value_.try_emplace(recording.inputs[i].value.index, InputIndex{i});
      input_of_storage_.try_emplace(recording.inputs[i].seen.storage, InputIndex{i});
    }
  }

  /// To be called for the outputs in order.
  OutputOrigin of_next(OutputIndex index) {
    const OutputObservation& seen = recording_.outputs[index.index].seen;
    if (!seen.defined) return UndefinedOutput{};
    const uint32_t value = seen.value->index;
    if (auto input = input_of_value_.find(value); input != input_of_value_.end())
      return IsInput{input->second};
    const auto [same, is_new_value] = output_of_value_.try_emplace(value, index);
    if (!is_new_value) return SameAsOutput{same->second};
    if (auto input = input_of_storage_.find(seen.storage); input != input_of_storage_.end()) {
      const ValueId base = recording_.inputs[input->second.index].value;
      return ViewOfInput{input->second, views_.chain(base, *seen.value)};
    }
    const auto [first, is_new_storage] = output_of_storage_.try_emplace(seen.storage, index);
    if (!is_new_storage) return ViewOfIntermediate{first->second};
    return NewTensor{};
  }

 private:
  const Recording& recording_;
  ViewSteps views_;
  // The first of each value (by the recording's ValueId) and of each storage.
  std::unordered_map<uint32_t, InputIndex> input_of_value_;
  std::unordered_map<size_t, InputIndex> input_of_storage_;
  std::unordered_map<uint32_t, OutputIndex> output_of_value_;
  std::unordered_map<size_t, OutputIndex> output_of_storage_;
};

/// A regenerated view requires grad as its input does, unless the chain detaches it. One that got a
/// history of its own, by a write after `detach()`, can't be regenerated.
void refuse_history_of_alias(const Recording& recording, const ViewOfInput& origin,
                             uint32_t index) {
  const OutputObservation& seen = recording.outputs[index].seen;
  const InputObservation& input = recording.inputs[origin.input.index].seen;
  if (!seen.requires_grad) return;
  const bool may_detach =
      origin.chain.empty() || std::ranges::any_of(origin.chain, [](const ViewStep& step) {
        return cuts_history(step.op.op);
      });
  if (input.requires_grad_after && !(may_detach && input.data_mutated)) return;
  throw Refusal(
      fmt::format("output {}: it shares memory with input {} and has a history of its own, which "
                  "is not supported yet. Expected a view of the "
                  "input. Return a copy.",
                  index, origin.input.index));
}

}  // namespace

ViewAndMutationMeta analyze_views_and_mutations(const Recording& recording) {
  ViewAndMutationMeta meta;
  for (size_t i = 0; i < recording.inputs.size(); ++i) {
    meta.inputs.push_back(info_of(recording.inputs[i], i));
  }
  Origins origins(recording);
  for (uint32_t i = 0; i < recording.outputs.size(); ++i) {
    const OutputObservation& seen = recording.outputs[i].seen;
    OutputOrigin origin = origins.of_next(OutputIndex{i});
    if (std::holds_alternative<ViewOfIntermediate>(origin)) {
      throw Refusal(
          fmt::format("output {}: it shares memory with output {}, which is not supported yet. "
                      "Expected outputs that share no memory.",
                      i, std::get<ViewOfIntermediate>(origin).first.index));
    }
    if (const auto* view = std::get_if<ViewOfInput>(&origin))
      refuse_history_of_alias(recording, *view, i);
    meta.outputs.push_back({.origin = std::move(origin),
                            .type = seen.type,
                            .requires_grad = seen.requires_grad,
                            .version = seen.version});
  }
  return meta;
}

}  // namespace foregrad
