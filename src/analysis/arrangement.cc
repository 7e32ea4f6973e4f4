#include "analysis/arrangement.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/overlap.h"
#include "graph/refusal.h"
#include "ops/offsets.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

/// An input with the views that are taken of it.
class Units {
 public:
  explicit Units(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), uint32_t{0});
  }
  uint32_t find(uint32_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void unite(uint32_t i, uint32_t k) {
    const auto [low, high] = std::minmax({find(i), find(k)});
    parent_[high] = low;
  }

 private:
  std::vector<uint32_t> parent_;
};

class Arranger {
 public:
  Arranger(const std::vector<InputFacts>& inputs, const std::vector<InputWrites>& writes,
           bool takes_offsets)
      : inputs_(inputs), writes_(writes), takes_offsets_(takes_offsets) {
    writes_.resize(inputs.size());
    arrangement_.inputs.resize(inputs.size());
  }

  Arrangement run() {
    find_families();
    const bool any_written =
        std::ranges::any_of(writes_, [](const InputWrites& w) { return w.data || w.storage; });
    Units units(inputs_.size());
    std::vector<bool> needs_memory(inputs_.size());
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      if (!is_there(i)) continue;
      const bool gaps = is_written(i) && !inputs_[i].type.is_dense_and_non_overlapping();
      // A view with gaps is no matter: its base has none.
      if ((gaps && !arrangement_.inputs[i].view_of) || writes_[i].storage ||
          (takes_offsets_ && any_written && inputs_[i].storage_bytes > 0))
        needs_memory[i] = true;
      if (const auto base = arrangement_.inputs[i].view_of) units.unite(i, *base);
    }
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      for (uint32_t k = 0; k < i; ++k) {
        if (!is_there(i) || !is_there(k) || inputs_[i].storage != inputs_[k].storage) continue;
        if (units.find(i) == units.find(k)) continue;
        const bool one_is_written = is_written(i) || is_written(k);
        if ((takes_offsets_ && any_written) || is_taken_whole(i) || is_taken_whole(k) ||
            (one_is_written && overlaps(inputs_[i].type, inputs_[k].type))) {
          units.unite(i, k);
          needs_memory[i] = needs_memory[k] = true;
        }
      }
    }
    make_memories(units, needs_memory);
    return std::move(arrangement_);
  }

 private:
  /// A base that is neither argument nor captured is an input only if views are taken of it.
  bool is_there(uint32_t i) const { return inputs_[i].is_argument || arrangement_.is_base(i); }
  /// A write to a view writes the base that it is taken of.
  bool is_written(uint32_t i) const {
    if (writes_[i].data) return true;
    for (uint32_t k = 0; k < inputs_.size(); ++k) {
      if (arrangement_.inputs[k].view_of == i && writes_[k].data) return true;
    }
    return false;
  }

  /// Whether the memory that it lies in is written back as a whole.
  bool is_taken_whole(uint32_t i) const {
    return writes_[i].storage || (is_written(i) && overlaps_itself(inputs_[i].type));
  }

  void find_families() {
    std::vector<bool> is_rewritten(inputs_.size());  // by base
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      if (writes_[i].history) is_rewritten[inputs_[i].view_of.value_or(i)] = true;
    }
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      const auto base = inputs_[i].view_of;
      // A view that was made a leaf has a history of its own.
      const bool follows = base && inputs_[i].requires_grad == inputs_[*base].requires_grad;
      if (follows && is_rewritten[*base]) arrangement_.inputs[i].view_of = base;
    }
  }

  void make_memories(const Units& units, const std::vector<bool>& needs_memory) {
    for (uint32_t first = 0; first < inputs_.size(); ++first) {
      if (units.find(first) != first) continue;
      std::vector<uint32_t> members;
      bool needed = false;
      for (uint32_t i = 0; i < inputs_.size(); ++i) {
        if (!is_there(i) || units.find(i) != first) continue;
        needed |= needs_memory[i];
        if (!arrangement_.inputs[i].view_of) members.push_back(i);
      }
      if (!needed || members.empty()) continue;
      for (const uint32_t i : members)
        arrangement_.inputs[i].memory = static_cast<uint32_t>(arrangement_.memories.size());
      arrangement_.memories.push_back(span_of(members));
    }
  }

  MemorySpan span_of(const std::vector<uint32_t>& members) const {
    const InputFacts& anchor = inputs_[members.front()];
    MemorySpan span{.anchor = members.front(), .type = {}};
    span.type.dtype = anchor.type.dtype;
    span.type.device = anchor.type.device;
    ByteExtent extent = extent_of(anchor.type);
    bool has_storage_change = false;
    for (const uint32_t i : members) {
      if (inputs_[i].type.dtype != span.type.dtype) span.type.dtype = at::kByte;
      const ByteExtent other = extent_of(inputs_[i].type);
      extent = {std::min(extent.begin, other.begin), std::max(extent.end, other.end)};
      has_storage_change |= writes_[i].storage;
    }
    span.is_whole_storage = takes_offsets_ || has_storage_change || span.type.dtype == at::kByte;
    const auto item = static_cast<int64_t>(c10::elementSize(span.type.dtype));
    if (span.is_whole_storage) {
      extent = {0, anchor.storage_bytes};
    } else {
      span.start = extent.begin / item - anchor.type.storage_offset;
    }
    span.type.sizes = {(extent.end - extent.begin) / item};
    span.type.strides = {1};
    return span;
  }

  const std::vector<InputFacts>& inputs_;
  std::vector<InputWrites> writes_;
  bool takes_offsets_;
  Arrangement arrangement_;
};

}  // namespace

InputWrites any_writes() { return {.data = true, .history = true, .storage = false}; }

std::vector<InputWrites> writes_of(const Recording& recording) {
  std::vector<InputWrites> writes;
  const bool reaches_far = takes_offsets(recording);
  for (const RecordedInput& input : recording.inputs) {
    if (std::holds_alternative<ViewBase>(input.role) || std::holds_alternative<Memory>(input.role))
      break;
    // `detach_` advances no version: views of the tensor keep their history.
    const bool is_replaced = !input.seen.same_history && input.seen.version_advance > 0;
    // After a write autograd takes a view from its base again, by the sizes that it has then, and
    // views of the view, which may reach further than it.
    const bool is_other_view =
        input.seen.is_view && input.seen.requires_grad_after &&
        (input.seen.before != input.seen.after || input.seen.storage_changed ||
         (reaches_far && input.seen.version_advance > 0));
    writes.push_back({.data = input.seen.data_mutated,
                      .history = is_replaced || is_other_view,
                      .storage = input.seen.storage_changed});
  }
  return writes;
}

void check_leaf_views(const std::vector<InputFacts>& inputs,
                      const std::vector<InputWrites>& writes) {
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const auto base = inputs[i].view_of;
    const bool is_leaf_view = base && inputs[i].requires_grad && !inputs[*base].requires_grad;
    if (!is_leaf_view || i >= writes.size() || !writes[i].history) continue;
    throw Refusal(
        fmt::format("input {} is a view that was made a leaf, and the function replaces its "
                    "history. Expected a leaf that is no view. Detach and clone it.",
                    i));
  }
}

Arrangement arrange(const std::vector<InputFacts>& inputs, const std::vector<InputWrites>& writes,
                    bool takes_offsets) {
  return Arranger(inputs, writes, takes_offsets).run();
}

}  // namespace foregrad
