#include "analysis/views_and_mutations.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/arrangement.h"
#include "analysis/find_effects.h"
#include "analysis/visible_hooks.h"
#include "graph/overlap.h"
#include "graph/refusal.h"
#include "ops/offsets.h"

namespace foregrad {

namespace {

/// Whether a custom function's backward checks a tensor of that version counter.
bool is_checked(const Recording& recording, ValueId counter) {
  return std::ranges::any_of(recording.nodes, [&](const auto& node) {
    return std::ranges::any_of(node->saved, [&](const auto& saved) {
      const auto shared = recording.counters.find(saved.value);
      const ValueId own = shared == recording.counters.end() ? saved.value : shared->second;
      return saved.is_checked && own == counter;
    });
  });
}

InputInfo info_of(const Recording& recording, uint32_t index) {
  const RecordedInput& input = recording.inputs[index];
  const InputObservation& seen = input.seen;
  if (seen.resized_to && *seen.resized_to != 0 &&
      (input.memory || input.view_of || seen.before.storage_offset != 0)) {
    throw Refusal(
        fmt::format("input {}: the function resizes the storage that it shares. Expected tensors "
                    "that begin their storage.",
                    index));
  }
  uint32_t counter = 0;
  while (recording.inputs[counter].seen.counter != seen.counter) ++counter;
  return {.type = seen.before,
          .after = seen.after,
          .requires_grad = seen.requires_grad_before,
          .is_leaf = seen.is_leaf,
          .data_mutated = seen.data_mutated,
          .metadata_mutated = seen.before != seen.after,
          .storage_changed = seen.storage_changed,
          .hidden_from_autograd = seen.same_history,
          .requires_grad_after = seen.requires_grad_after,
          .is_leaf_after = seen.is_leaf_after,
          .version_advance = seen.version_advance,
          .view_of = input.view_of,
          .memory = input.memory,
          .found_by = input.found_by,
          .span = input.span,
          .creation_meta = input.creation_meta,
          .counter = counter,
          .storage_before = seen.storage_before,
          .storage_after = seen.storage_after,
          .resized_to = seen.resized_to,
          .is_checked = is_checked(recording, seen.counter),
          .retains_grad = seen.retains_grad};
}

/// Bases and memories are written where the inputs that lie in them are; as a whole where elements
/// of one share memory.
void find_written_parts(std::vector<InputInfo>& inputs, bool any_part) {
  std::vector<bool> is_whole(inputs.size());
  for (uint32_t i = 0; i < inputs.size(); ++i)
    is_whole[i] = inputs[i].data_mutated && (any_part || overlaps_itself(inputs[i].type));
  const auto gather = [&](auto&& container_of) {
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      const std::optional<InputIndex> container = container_of(inputs[i]);
      if (!container || !inputs[i].data_mutated) continue;
      InputInfo& outer = inputs[container->index];
      const bool is_written_itself = outer.data_mutated && outer.written_parts.empty();
      outer.data_mutated = true;
      if (is_whole[i] || is_whole[container->index] || is_written_itself) {
        is_whole[container->index] = true;
        outer.written_parts.clear();
      } else if (inputs[i].written_parts.empty()) {
        outer.written_parts.push_back({i});
      } else {
        outer.written_parts.insert(outer.written_parts.end(), inputs[i].written_parts.begin(),
                                   inputs[i].written_parts.end());
      }
    }
  };
  gather([](const InputInfo& info) { return info.view_of; });
  gather([](const InputInfo& info) { return info.memory; });
}

/// Which outputs are tensors of the call's own, which are the caller's, and which share memory.
class Origins {
 public:
  explicit Origins(const Recording& recording) : recording_(recording) {
    for (uint32_t i = 0; i < recording.inputs.size(); ++i) {
      const RecordedInput& input = recording.inputs[i];
      input_of_value_.try_emplace(input.value.index, InputIndex{i});
      seen_outside_.insert(input.seen.storage_before);
      seen_outside_.insert(input.seen.storage_after);
    }
    std::unordered_map<uint32_t, uint32_t> first_value;  // by storage
    for (const RecordedOutput& output : recording.outputs) {
      if (!output.seen.defined) continue;
      const auto [first, is_new] =
          first_value.try_emplace(output.seen.storage, output.seen.value->index);
      if (!is_new && first->second != output.seen.value->index)
        seen_outside_.insert(output.seen.storage);
    }
  }

  /// To be called for the outputs in order. Nothing: the effects make it.
  std::optional<OutputOrigin> of_next(OutputIndex index) {
    const OutputObservation& seen = recording_.outputs[index.index].seen;
    if (!seen.defined) return UndefinedOutput{};
    const uint32_t value = seen.value->index;
    if (auto input = input_of_value_.find(value); input != input_of_value_.end())
      return IsInput{input->second};
    const auto [same, is_new] = output_of_value_.try_emplace(value, index);
    if (!is_new) return SameAsOutput{same->second};
    // What `detach` gives shares the version counter.
    if (seen.is_view || seen_outside_.contains(seen.storage) ||
        recording_.counters.contains(*seen.value))
      return std::nullopt;
    return NewTensor{};
  }

 private:
  const Recording& recording_;
  // The first of each value, by the recording's ValueId.
  std::unordered_map<uint32_t, InputIndex> input_of_value_;
  std::unordered_map<uint32_t, OutputIndex> output_of_value_;
  std::unordered_set<uint32_t> seen_outside_;  // storages of inputs, or of several outputs
};

}  // namespace

ViewAndMutationMeta analyze_views_and_mutations(const Recording& recording) {
  ViewAndMutationMeta meta;
  for (uint32_t i = 0; i < recording.inputs.size(); ++i)
    meta.inputs.push_back(info_of(recording, i));
  find_written_parts(meta.inputs, takes_offsets(recording));
  Origins origins(recording);
  std::vector<std::optional<OutputOrigin>> found;
  std::vector<ValueId> made_by_effects;
  for (uint32_t o = 0; o < recording.outputs.size(); ++o) {
    found.push_back(origins.of_next({o}));
    if (!found.back()) made_by_effects.push_back(*recording.outputs[o].seen.value);
  }
  FoundEffects effects = find_effects(recording, made_by_effects);
  size_t next = 0;
  for (uint32_t o = 0; o < recording.outputs.size(); ++o) {
    const OutputObservation& seen = recording.outputs[o].seen;
    meta.outputs.push_back({.origin = found[o] ? *found[o] : effects.origins[next++],
                            .type = seen.type,
                            .requires_grad = seen.requires_grad,
                            .is_leaf = seen.is_leaf,
                            .is_view = seen.is_view,
                            .version = seen.version,
                            .storage = seen.storage,
                            .retains_grad = seen.retains_grad,
                            .is_hidden = recording.outputs[o].is_hidden});
  }
  meta.bases = std::move(effects.bases);
  meta.effects = std::move(effects.effects);
  meta.slot_count = effects.slot_count;
  meta.hooks = find_visible_hooks(recording);
  return meta;
}

}  // namespace foregrad
