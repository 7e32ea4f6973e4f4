#include "analysis/visible_hooks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "graph/refusal.h"

namespace foregrad {

namespace {

/// The tensors of a call by their values.
class CallTensors {
 public:
  explicit CallTensors(const Recording& recording) : recording_(recording) {
    for (uint32_t i = 0; i < recording.inputs.size(); ++i) {
      tensors_.try_emplace(recording.inputs[i].value, InputIndex{i});
      seen_storages_.insert(recording.inputs[i].seen.storage_before);
      seen_storages_.insert(recording.inputs[i].seen.storage_after);
    }
    for (uint32_t o = 0; o < recording.outputs.size(); ++o) {
      const RecordedOutput& output = recording.outputs[o];
      if (!output.seen.value) continue;
      tensors_.try_emplace(*output.seen.value, OutputIndex{o});
      if (!output.is_hidden) seen_storages_.insert(output.seen.storage);
    }
  }

  std::optional<CallTensor> find(ValueId value) const {
    const auto found = tensors_.find(value);
    return found == tensors_.end() ? std::nullopt : std::optional(found->second);
  }
  /// What the hook is on, if the caller sees that with the hook's history.
  std::optional<CallTensor> find(const RecordedHook& hook) const {
    return hook.is_on_first_history || hook.is_on_last_history ? find(hook.value) : std::nullopt;
  }
  /// Whether the caller can write what the tensor holds.
  bool is_seen(ValueId value) const {
    const auto hooked = recording_.hooked.find(value);
    return hooked == recording_.hooked.end() || seen_storages_.contains(hooked->second.storage);
  }

 private:
  const Recording& recording_;
  std::map<ValueId, CallTensor> tensors_;
  std::unordered_set<uint32_t> seen_storages_;
};

bool writes(const RecordedHook& hook) {
  return std::ranges::any_of(hook.does->backwards,
                             [](const auto& entry) { return entry.second.writes; });
}

/// A view has the history that its base has when it is asked for it.
bool loses_history(const RecordedInput& input) { return input.view_of || input.seen.is_view; }

bool has_own_autocast(const RecordedHook& hook) {
  return std::ranges::any_of(hook.does->backwards, [](const auto& entry) {
    return std::ranges::any_of(entry.second.ops,
                               [](const RecordedOp& op) { return op.modes.autocast_enabled; });
  });
}

}  // namespace

std::vector<VisibleHook> find_visible_hooks(const Recording& recording) {
  std::vector<VisibleHook> hooks;
  const CallTensors tensors(recording);
  for (uint32_t k = 0; k < recording.hooks.size(); ++k) {
    const RecordedHook& hook = recording.hooks[k];
    const auto tensor = tensors.find(hook);
    if (!tensor) continue;
    const auto* input = std::get_if<InputIndex>(&*tensor);
    if (input && hook.is_on_first_history && loses_history(recording.inputs[input->index])) {
      throw Refusal(
          "a hook inside the function is on an argument that is a view, which may get another "
          "history by a write to its base. Expected an argument that is no view.");
    }
    if (has_own_autocast(hook)) {
      throw Refusal(
          "a hook inside the function, on a tensor that its caller sees, turns autocast on. "
          "Expected casts by `to`.");
    }
    VisibleHook& found = hooks.emplace_back();
    found = {.hook = k,
             .tensor = *tensor,
             .is_first = input && hook.is_on_first_history,
             .does = hook.does};
    for (const auto& saved : hook.does->saved) {
      // Without hidden outputs nobody registers it.
      if (const auto source = tensors.find(saved.value)) found.saved.push_back(*source);
    }
  }
  return hooks;
}

bool touches_seen_tensors(const Recording& recording, const RecordedHook& hook) {
  const CallTensors tensors(recording);
  return writes(hook) || std::ranges::any_of(hook.does->saved, [&](const auto& saved) {
           return tensors.is_seen(saved.value);
         });
}

std::shared_ptr<const Recording> with_hidden_outputs(std::shared_ptr<const Recording> recording) {
  if (recording->hooks.empty()) return recording;
  auto changed = std::make_shared<Recording>(*recording);
  const auto show = [&](ValueId value) {
    if (!CallTensors(*changed).find(value))
      changed->outputs.push_back({.seen = recording->hooked.at(value), .is_hidden = true});
  };
  for (const RecordedHook& hook : recording->hooks) {
    if (hook.is_on_last_history) show(hook.value);
    if (CallTensors(*changed).find(hook)) {
      for (const auto& saved : hook.does->saved) show(saved.value);
    } else {
      throw Refusal(
          "a hook inside the function is on a tensor that gets another history afterwards, by a "
          "write. Expected it to be registered after the write.");
    }
  }
  return changed->outputs.size() == recording->outputs.size() ? recording : changed;
}

}  // namespace foregrad
