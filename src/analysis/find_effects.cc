// A walk from the last operator to the first finds what is visible: inputs are, wanted values are,
// and so is all that a visible tensor is a view of. An operator that makes a visible view, or that
// changes a visible tensor otherwise than by writing elements, is called again. What a visible view
// begins with, if it is no input, is a base. Then a walk from the first to the last puts the
// effects in order.
#include "analysis/find_effects.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <variant>

#include "graph/refusal.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

class Finder {
 public:
  explicit Finder(const Recording& recording)
      : recording_(recording),
        made_by_(recording.value_count, kNoOp),
        is_visible_(recording.value_count),
        slots_(recording.value_count),
        is_called_again_(recording.ops.size()) {
    for (uint32_t i = 0; i < recording.inputs.size(); ++i) {
      const ValueId value = recording.inputs[i].value;
      input_of_.emplace(value.index, InputIndex{i});
      is_visible_[value.index] = true;
      made_by_[value.index] = kInput;
    }
    for (uint32_t i = 0; i < recording.ops.size(); ++i) {
      for (const Operand& result : recording.ops[i].results) {
        for_each_value(result, [&](ValueId value) {
          if (made_by_[value.index] == kNoOp) made_by_[value.index] = i;
          // A base that the operator made inside.
          const auto base = recording.view_bases.find(value);
          if (base != recording.view_bases.end() && made_by_[base->second.index] == kNoOp)
            inner_bases_[i].push_back(base->second);
        });
      }
    }
    for (auto& [op, bases] : inner_bases_) {
      std::erase_if(bases, [&](ValueId base) { return made_by_[base.index] != kNoOp; });
    }
  }

  FoundEffects run(const std::vector<ValueId>& wanted) {
    for (const ValueId value : wanted) is_visible_[value.index] = true;
    // Until nothing more is found: what is visible only by an earlier operator may be changed by a
    // later one.
    for (auto before = is_visible_;; before = is_visible_) {
      for (uint32_t i = static_cast<uint32_t>(recording_.ops.size()); i-- > 0;) look_at(i);
      if (is_visible_ == before) break;
    }
    find_rewrites();
    found_.slot_count = static_cast<uint32_t>(recording_.inputs.size());
    for (uint32_t i = 0; i < recording_.inputs.size(); ++i)
      give_slot(recording_.inputs[i].value, Slot{i}, InputIndex{i});
    for (uint32_t i = 0; i < recording_.ops.size(); ++i) emit(i);
    for (const ValueId value : wanted) found_.origins.push_back(origin_of(value));
    return std::move(found_);
  }

 private:
  static constexpr uint32_t kNoOp = UINT32_MAX;
  static constexpr uint32_t kInput = UINT32_MAX - 1;
  using Source = std::variant<InputIndex, BaseIndex>;  // whose memory a value lies in

  // ---- from the last operator to the first

  void look_at(uint32_t i) {
    const RecordedOp& op = recording_.ops[i];
    for (const RecordedWrite& write : op.writes) {
      if (!write.data && op.is_call && is_visible_[write.value.index]) is_called_again_[i] = true;
    }
    for (size_t r = 0; r < op.results.size(); ++r) {
      for_each_value(op.results[r], [&](ValueId value) {
        if (!is_visible_[value.index] || made_by_[value.index] != i) return;
        if (is_view_by_call(op, r, value)) {
          is_called_again_[i] = true;
        } else if (const auto base = recording_.view_bases.find(value);
                   base != recording_.view_bases.end()) {
          is_visible_[base->second.index] = true;  // taken by strides
        }
      });
    }
    if (!is_called_again_[i]) return;
    for (const Operand& argument : op.args)
      for_each_value(argument, [&](ValueId value) { is_visible_[value.index] = true; });
  }

  /// Whether calling the operator again makes the view. Composites that may copy are believed if
  /// autograd calls the result a view.
  bool is_view_by_call(const RecordedOp& op, size_t result, ValueId value) const {
    const bool declared = std::ranges::any_of(view_aliases(op.op), [&](const AliasPair& pair) {
      return pair.result == result && std::holds_alternative<ValueId>(op.args[pair.argument]);
    });
    return declared && (is_certain_view(op.op) || recording_.view_bases.contains(value));
  }

  // ---- what autograd made of them

  /// The last operator that replaces a tensor's history and is not called again.
  struct Rewrite {
    uint32_t op = kNoOp;
    bool has_history = false;
    std::vector<ValueId> through;  // views that were written, or read since
  };

  static void add_once(std::vector<ValueId>& values, ValueId value) {
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }

  void find_rewrites() {
    for (uint32_t i = 0; i < recording_.ops.size(); ++i) {
      if (!rewrites_.empty() && recording_.ops[i].modes.grad_mode) note_reads(recording_.ops[i]);
      if (is_called_again_[i]) continue;
      for (const RecordedWrite& write : recording_.ops[i].writes) {
        if (!write.rewritten) continue;
        Rewrite& rewrite = rewrites_[write.rewritten->index];
        if (std::exchange(rewrite.op, i) != i) rewrite.through.clear();
        rewrite.has_history = write.has_history;
        if (write.value != *write.rewritten) add_once(rewrite.through, write.value);
      }
    }
  }

  /// Reading a view asks it for its history.
  void note_reads(const RecordedOp& op) {
    for (const Operand& argument : op.args)
      for_each_value(argument, [&](ValueId value) { note_read(value); });
    if (!op.attaches) return;
    for (const auto& input : recording_.nodes[op.attaches->node]->inputs) {
      if (input) note_read(*input);
    }
  }

  void note_read(ValueId value) {
    const auto base = recording_.view_bases.find(value);
    if (base == recording_.view_bases.end()) return;
    const auto rewrite = rewrites_.find(base->second.index);
    if (rewrite != rewrites_.end()) add_once(rewrite->second.through, value);
  }

  // ---- from the first operator to the last

  void give_slot(ValueId value, Slot slot, Source source) {
    slots_[value.index] = slot;
    sources_.emplace(slot.index, source);
    const auto counter = recording_.counters.find(value);
    counter_slots_.try_emplace(
        counter == recording_.counters.end() ? value.index : counter->second.index, slot);
  }

  Slot new_slot() { return Slot{found_.slot_count++}; }

  void emit(uint32_t i) {
    const RecordedOp& op = recording_.ops[i];
    if (const auto inner = inner_bases_.find(i); inner != inner_bases_.end()) {
      for (const ValueId base : inner->second) {
        if (is_visible_[base.index]) make_base(base, i);
      }
    }
    for (const Operand& result : op.results) {
      for_each_value(result, [&](ValueId value) {
        if (is_visible_[value.index] && made_by_[value.index] == i && !is_called_again_[i])
          make(value, i);
      });
    }
    if (is_called_again_[i]) call_again(op, i);
    for (const RecordedWrite& write : op.writes) advance_version(write, i);
    for (const RecordedWrite& write : op.writes) {
      if (!write.rewritten) continue;
      join_after_rewrite(*write.rewritten, i);
      if (!op.is_call) hold_until_rewritten(*write.rewritten, i);
    }
  }

  /// A visible value that no call makes: a strided view, or a base.
  void make(ValueId value, uint32_t i) {
    const auto view = recording_.view_bases.find(value);
    if (view == recording_.view_bases.end()) {
      make_base(value, i);
      return;
    }
    const std::optional<Slot> base = slots_[view->second.index];
    if (!base) return;  // then nothing that is wanted can be made
    const Slot slot = new_slot();
    found_.effects.emplace_back(TakeStrided{
        .base = *base, .view = slot, .type = {}, .grad_mode = recording_.ops[i].modes.grad_mode});
    strided_.emplace(value.index, found_.effects.size() - 1);
    give_slot(value, slot, sources_.at(base->index));
  }

  void make_base(ValueId value, uint32_t i) {
    if (slots_[value.index]) return;
    const BaseIndex base{static_cast<uint32_t>(found_.bases.size())};
    const Slot slot = new_slot();
    found_.bases.push_back({.value = value, .slot = slot, .after_op = i, .is_computed = true});
    give_slot(value, slot, base);
    if (const auto version = recording_.first_versions.find(value);
        version != recording_.first_versions.end())
      found_.effects.emplace_back(AdvanceVersion{slot, version->second});
    const auto rewrite = rewrites_.find(value.index);
    const bool is_rewritten = rewrite != rewrites_.end() && rewrite->second.op > i;
    if (!recording_.starts_with_history[value.index]) return;
    if (!is_rewritten) {
      found_.effects.emplace_back(JoinHistory{slot, IntermediateBase{base}, i});
    } else if (rewrite->second.has_history) {
      found_.effects.emplace_back(HoldHistory{slot});
    }
  }

  void call_again(const RecordedOp& op, uint32_t i) {
    CallAgain call{.op = op};
    call.op.writes.clear();
    call.op.history = 0;
    std::optional<Source> source;
    const auto to_slot = [&](ValueId& value) {
      const std::optional<Slot> slot = slots_[value.index];
      if (slot && !source) source = sources_.at(slot->index);
      value = ValueId{slot ? slot->index : UINT32_MAX};
    };
    for (Operand& argument : call.op.args) for_each_value(argument, to_slot);
    for (Operand& result : call.op.results) {
      if (auto* list = std::get_if<ValueList>(&result)) {
        for (auto& entry : *list) {
          if (entry) entry = result_slot(*entry, i, source);
        }
      } else if (const auto* value = std::get_if<ValueId>(&result)) {
        const auto slot = result_slot(*value, i, source);
        result = slot ? Operand(*slot) : Operand(c10::IValue());
      }
    }
    found_.effects.emplace_back(std::move(call));
  }

  std::optional<ValueId> result_slot(ValueId value, uint32_t i, std::optional<Source> source) {
    if (made_by_[value.index] != i || !is_visible_[value.index] || !source) return std::nullopt;
    const Slot slot = new_slot();
    give_slot(value, slot, *source);
    return ValueId{slot.index};
  }

  void advance_version(const RecordedWrite& write, uint32_t i) {
    if (is_called_again_[i] || write.version_advance == 0) return;
    const auto slot = counter_slots_.find(write.counter.index);
    if (slot == counter_slots_.end()) return;
    found_.effects.emplace_back(AdvanceVersion{slot->second, write.version_advance});
  }

  void join_after_rewrite(ValueId root, uint32_t i) {
    const std::optional<Slot> slot = slots_[root.index];
    const auto found = rewrites_.find(root.index);
    if (!slot || found == rewrites_.end() || found->second.op != i) return;
    const Rewrite& rewrite = found->second;
    if (!rewrite.has_history) return;
    const auto& attaches = recording_.ops[i].attaches;
    const uint8_t creation_meta = attaches ? attaches->creation_meta : uint8_t{0};
    if (const auto input = input_of_.find(root.index); input != input_of_.end()) {
      found_.effects.emplace_back(
          JoinHistory{*slot, MutatedInput{input->second}, i, creation_meta});
    } else {
      const auto base = std::ranges::find(found_.bases, root, &BaseInfo::value);
      const auto index = static_cast<uint32_t>(base - found_.bases.begin());
      if (base == found_.bases.end())
        found_.bases.push_back({.value = root, .slot = *slot, .after_op = i, .is_computed = false});
      found_.effects.emplace_back(JoinHistory{*slot, IntermediateBase{{index}}, i, creation_meta});
    }
    for (const ValueId view : rewrite.through) {
      if (slots_[view.index]) found_.effects.emplace_back(RefreshHistory{*slots_[view.index]});
    }
  }

  /// Views that are taken until its history is replaced once more have one.
  void hold_until_rewritten(ValueId value, uint32_t i) {
    const auto rewrite = rewrites_.find(value.index);
    if (!slots_[value.index] || rewrite == rewrites_.end()) return;
    if (rewrite->second.op > i && rewrite->second.has_history && !input_of_.contains(value.index))
      found_.effects.emplace_back(HoldHistory{*slots_[value.index]});
  }

  // ---- results

  OutputOrigin origin_of(ValueId value) {
    const std::optional<Slot> slot = slots_[value.index];
    if (!slot) {
      throw Refusal(
          "an output shares memory with a tensor in a way that can't be made again. Return a "
          "copy.");
    }
    for (const RecordedOutput& output : recording_.outputs) {
      const auto strided = strided_.find(value.index);
      if (strided == strided_.end() || output.seen.value != value) continue;
      auto& take = std::get<TakeStrided>(found_.effects[strided->second]);
      take.type = output.seen.type;
      if (take.base.index < recording_.inputs.size())
        take.type.storage_offset -= recording_.inputs[take.base.index].seen.traced_offset;
    }
    const Source source = sources_.at(slot->index);
    if (const auto* input = std::get_if<InputIndex>(&source)) return ViewOfInput{*input, *slot};
    return ViewOfIntermediate{std::get<BaseIndex>(source), *slot};
  }

  const Recording& recording_;
  std::vector<uint32_t> made_by_;           // by ValueId: the operator that gave it first
  std::vector<bool> is_visible_;            // by ValueId
  std::vector<std::optional<Slot>> slots_;  // by ValueId
  std::vector<bool> is_called_again_;       // by operator
  std::unordered_map<uint32_t, InputIndex> input_of_;
  std::map<uint32_t, std::vector<ValueId>> inner_bases_;  // by operator
  std::unordered_map<uint32_t, Rewrite> rewrites_;        // by ValueId
  std::unordered_map<uint32_t, Source> sources_;          // by Slot
  std::unordered_map<uint32_t, Slot> counter_slots_;      // by the counter's ValueId
  std::unordered_map<uint32_t, size_t> strided_;          // by ValueId: the effect
  FoundEffects found_;
};

}  // namespace

FoundEffects find_effects(const Recording& recording, const std::vector<ValueId>& wanted) {
  return Finder(recording).run(wanted);
}

}  // namespace foregrad
