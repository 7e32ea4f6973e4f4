#include "capture/input_table.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <utility>

#include "capture/stand_in.h"
#include "capture/trace_tensor.h"
#include "graph/alias.h"
#include "graph/overlap.h"
#include "graph/refusal.h"
#include "ops/schema.h"

namespace foregrad {

namespace functional = at::functionalization::impl;

namespace {

/// Whether autograd knows the same of its views. A leaf that no longer requires grad is no more
/// than that: views that were taken before keep their history.
bool keeps_history(const at::Tensor& tensor, const torch::autograd::Edge& edge) {
  if (history_of(tensor) == edge) return true;
  return !tensor.requires_grad() && edge.is_valid() &&
         torch::autograd::impl::try_get_grad_accumulator(tensor) == edge.function;
}

uint8_t creation_meta_of(const at::Tensor& view) {
  return static_cast<uint8_t>(
      torch::autograd::impl::get_view_autograd_meta(view)->get_creation_meta());
}

}  // namespace

void refuse_unsupported_tensor(const at::Tensor& tensor, bool in_inference_mode,
                               const std::string& where) {
  const bool is_plain = tensor.layout() == at::kStrided && tensor.device().is_cpu() &&
                        !tensor.is_quantized() && !tensor.is_nested() &&
                        !functional::isFunctionalTensor(tensor);
  if (!is_plain) {
    throw Refusal(fmt::format(
        "{}: a tensor of layout `{}` on device `{}` is not supported. Expected a strided CPU "
        "tensor that is not quantized or nested. Convert it outside the compiled function.",
        where, c10::str(tensor.layout()), tensor.device().str()));
  }
  if (tensor.is_inference() && !in_inference_mode) {
    throw Refusal(
        fmt::format("{}: a tensor that was made in inference mode is not supported outside of it. "
                    "Clone it, or call in inference mode.",
                    where));
  }
}

torch::autograd::Edge history_of(const at::Tensor& tensor) {
  return tensor.requires_grad() ? torch::autograd::impl::gradient_edge(tensor)
                                : torch::autograd::Edge();
}

size_t InputTable::add(Input input) {
  const size_t index = inputs_.size();
  input.first_storage = input.stand_in.storage();
  input.storage_bytes = input.first_storage.nbytes();
  input.traced_offset = input.stand_in.storage_offset();
  if (input.real.defined()) {
    // What `as_strided` may reach.
    if (!input.memory && !input.view_of)
      traced_inside(input.stand_in)->meta().storage().set_nbytes(input.real.storage().nbytes());
    by_tensor_.emplace(input.real.unsafeGetTensorImpl(), index);
    watch_.watch_data(input.real);
    watch_.watch_hooks(input.real);
    share_counter(input.real, input.stand_in);
    if (input.real.requires_grad()) {
      if (input.real.is_leaf() && !input.view_of) {
        // A gradient that the function takes with respect to the real tensor ends at its own
        // accumulator.
        watch_.watch_grad(input.real);
        input.edge = {torch::autograd::impl::grad_accumulator(input.real), 0};
        torch::autograd::impl::set_grad_accumulator(
            input.stand_in, c10::weak_intrusive_ptr<torch::autograd::Node>(input.edge.function));
      }
      input.edge = torch::autograd::impl::gradient_edge(input.stand_in);
    }
  }
  origins_[values_.number(input.stand_in).index] = index;
  inputs_.push_back(std::move(input));
  return index;
}

/// Stand-ins share a version counter where the tensors that they stand for do.
void InputTable::share_counter(const at::Tensor& real, const at::Tensor& stand_in) {
  if (real.is_inference()) return;  // it has none
  const auto [known, is_new] = real_counters_.try_emplace(version_counter_identity(real), stand_in);
  if (is_new) return;
  stand_in.unsafeGetTensorImpl()->set_version_counter(
      known->second.unsafeGetTensorImpl()->version_counter());
}

void InputTable::place_one(const InputSet& inputs, const Arrangement& arrangement, uint32_t number,
                           const InputRole& role) {
  const at::Tensor& real = inputs.tensors[number];
  const Placement placement = arrangement.of(number);
  Input input{.real = real, .stand_in = {}, .role = role, .type = type_of(real), .order = number};
  if (placement.view_of) {
    const Input& base =
        inputs_[by_tensor_.at(inputs.tensors[*placement.view_of].unsafeGetTensorImpl())];
    input.view_of = static_cast<size_t>(&base - inputs_.data());
    input.stand_in = place_as_view(base.stand_in, input.type, offset_between(base.type, input.type),
                                   creation_meta_of(real));
    if (input.stand_in.requires_grad() != real.requires_grad() ||
        input.stand_in.is_leaf() != real.is_leaf()) {
      throw Refusal(fmt::format(
          "input {}: it is a view, is written, and requires grad otherwise than its base, which is "
          "not supported. Pass the base.",
          number));
    }
  } else if (placement.memory) {
    const Input& memory = inputs_[*placement.memory];
    const int64_t start =
        memory.span.is_whole_storage
            ? 0
            : inputs.facts[memory.span.anchor].type.storage_offset + memory.span.start;
    input.memory = *placement.memory;
    input.stand_in = place_in_memory(memory.stand_in, input.type, input.type.storage_offset - start,
                                     real.requires_grad(), real.is_leaf());
  } else {
    input.stand_in = make_stand_in(tracer_, input.type, role, real.requires_grad(), real.is_leaf());
  }
  add(std::move(input));
}

void InputTable::place(const InputSet& inputs, const Arrangement& arrangement,
                       size_t argument_count) {
  const auto role_of = [&](uint32_t i) -> InputRole {
    if (!inputs.facts[i].is_argument) return ViewBase{};
    return i < argument_count ? InputRole(UserInput{}) : InputRole(Lifted{});
  };
  for (const MemorySpan& span : arrangement.memories) {  // memory k is input k
    add({.stand_in = make_stand_in(tracer_, span.type, Memory{}, false, true),
         .role = Memory{},
         .span = span,
         .type = span.type});
  }
  for (const bool views : {false, true}) {
    for (uint32_t i = 0; i < inputs.facts.size(); ++i) {
      if (arrangement.of(i).view_of.has_value() != views) continue;
      if (inputs.facts[i].is_argument || arrangement.is_base(i))
        place_one(inputs, arrangement, i, role_of(i));
    }
  }
  for (size_t k = 0; k < arrangement.memories.size(); ++k) {
    const auto& anchor = inputs.tensors[arrangement.memories[k].anchor];
    inputs_[k].found_by = by_tensor_.at(anchor.unsafeGetTensorImpl());
  }
  for (uint32_t i = 0; i < inputs.facts.size(); ++i) {
    if (!inputs.facts[i].is_argument || !inputs.facts[i].view_of) continue;
    const auto base =
        by_tensor_.find(inputs.tensors[*inputs.facts[i].view_of].unsafeGetTensorImpl());
    if (base != by_tensor_.end() && std::holds_alternative<ViewBase>(inputs_[base->second].role))
      inputs_[base->second].found_by = by_tensor_.at(inputs.tensors[i].unsafeGetTensorImpl());
  }
}

at::Tensor InputTable::capture(const at::Tensor& tensor) {
  const auto known = by_tensor_.find(tensor.unsafeGetTensorImpl());
  if (known != by_tensor_.end()) {
    // An argument that the function also reaches by capture is only the same tensor by chance: it
    // is held, for a guard.
    inputs_[known->second].is_named = true;
    return inputs_[known->second].stand_in;
  }
  const TensorType type = type_of(tensor);
  if (type.is_dense_and_non_overlapping()) {
    return inputs_[add({.real = tensor,
                        .stand_in = make_stand_in(tracer_, type, Lifted{}, tensor.requires_grad(),
                                                  tensor.is_leaf()),
                        .role = Lifted{},
                        .type = type})]
        .stand_in;
  }
  // A write would close the gaps between its elements.
  const ByteExtent extent = extent_of(type);
  const auto item = static_cast<int64_t>(tensor.element_size());
  MemorySpan span{
      .type = {.dtype = type.dtype, .sizes = {(extent.end - extent.begin) / item}, .strides = {1}}};
  const size_t memory = add({.stand_in = make_stand_in(tracer_, span.type, Memory{}, false, true),
                             .role = Memory{},
                             .span = span,
                             .type = span.type});
  const size_t own = add({.real = tensor,
                          .stand_in = place_in_memory(inputs_[memory].stand_in, type, 0,
                                                      tensor.requires_grad(), tensor.is_leaf()),
                          .role = Lifted{},
                          .memory = memory,
                          .type = type});
  inputs_[memory].found_by = own;
  return inputs_[own].stand_in;
}

void InputTable::note_views(const RecordedOp& op) {
  if (origins_.empty()) return;
  for (const AliasPair& pair : memory_aliases(op.op)) {
    for_each_value(op.args[pair.argument], [&](ValueId argument) {
      const auto origin = origins_.find(argument.index);
      if (origin == origins_.end()) return;
      const size_t input = origin->second;
      for_each_value(op.results[pair.result], [&](ValueId result) {
        // What may be a view may be a copy too.
        const auto& tensors = values_.tensors();
        if (tensors[result.index].is_alias_of(tensors[argument.index]))
          origins_.try_emplace(result.index, input);
      });
    });
  }
}

void InputTable::note_other_storage(ValueId value, const at::Tensor& tensor) {
  const auto origin = origins_.find(value.index);
  if (origin == origins_.end()) return;
  if (inputs_[origin->second].stand_in.is_same(tensor))
    inputs_[origin->second].storage_changed = true;
  origins_.erase(origin);
}

std::vector<at::Tensor> InputTable::stand_ins() const {
  std::vector<at::Tensor> stand_ins;
  for (const Input& input : inputs_) stand_ins.push_back(input.stand_in);
  return stand_ins;
}

std::optional<torch::autograd::Edge> InputTable::first_history(const at::Tensor& stand_in) const {
  const auto found = std::ranges::find_if(
      inputs_, [&](const Input& input) { return input.stand_in.is_same(stand_in); });
  return found == inputs_.end() ? std::nullopt : std::optional(found->edge);
}

bool InputTable::is_whole_input(ValueId value) const {
  const at::Tensor& tensor = values_.tensors()[value.index];
  return std::ranges::any_of(inputs_, [&](const Input& input) {
    return input.stand_in.is_same(tensor) && !input.view_of && !input.memory &&
           input.real.defined();
  });
}

void InputTable::note_data(ValueId value, const c10::StorageImpl& storage) {
  if (!notes_writes_) return;
  if (const auto origin = origins_.find(value.index); origin != origins_.end()) {
    inputs_[origin->second].is_written = true;
    return;
  }
  for (Input& input : inputs_) {
    if (input.first_storage.unsafeGetStorageImpl() == &storage) input.is_written = true;
  }
}

uint32_t InputTable::storage_number(const c10::Storage& storage) {
  const auto next = static_cast<uint32_t>(storage_numbers_.size());
  return storage_numbers_.try_emplace(storage.unsafeGetStorageImpl(), next).first->second;
}

InputObservation InputTable::observe(const Input& input) {
  const at::Tensor& now = input.stand_in;
  functional::sync(now);
  const Input& root = input.view_of ? inputs_[*input.view_of] : input;
  const bool is_real = input.real.defined();
  InputObservation seen{.before = input.type,
                        .after = type_of(now),
                        .traced_offset = input.traced_offset,
                        .requires_grad_before = is_real && input.real.requires_grad(),
                        .requires_grad_after = now.requires_grad(),
                        .is_leaf = !is_real || input.real.is_leaf(),
                        .is_leaf_after = now.is_leaf(),
                        .is_view = is_real && input.real.is_view(),
                        .data_mutated = input.is_written,
                        .storage_changed = input.storage_changed,
                        .same_history = !is_real || keeps_history(root.stand_in, root.edge),
                        .version_advance = static_cast<uint32_t>(now._version()),
                        .counter = values_.counter_of(now),
                        .storage_before = storage_number(input.first_storage),
                        .storage_after = storage_number(now.storage()),
                        .retains_grad = now.retains_grad()};
  if (is_real) seen.storage_bytes = static_cast<int64_t>(input.real.storage().nbytes());
  if (input.first_storage.nbytes() != input.storage_bytes)
    seen.resized_to = static_cast<int64_t>(input.first_storage.nbytes());
  // A written value begins anywhere; the effects move an input as eager does.
  seen.after.storage_offset = input.type.storage_offset;
  return seen;
}

std::vector<RecordedInput> InputTable::finish() {
  // Arguments, captured tensors, view bases, memories.
  const auto rank = [](const InputRole& role) {
    return std::holds_alternative<UserInput>(role)  ? 0
           : std::holds_alternative<Lifted>(role)   ? 1
           : std::holds_alternative<ViewBase>(role) ? 2
                                                    : 3;
  };
  std::vector<size_t> order(inputs_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(
      order, {}, [&](size_t i) { return std::pair(rank(inputs_[i].role), inputs_[i].order); });
  std::vector<InputIndex> index_of(inputs_.size());
  for (uint32_t i = 0; i < order.size(); ++i) index_of[order[i]] = {i};
  const auto index = [&](std::optional<size_t> i) {
    return i ? std::optional(index_of[*i]) : std::nullopt;
  };
  std::vector<RecordedInput> inputs;
  for (const size_t i : order) {
    const Input& input = inputs_[i];
    const InputIndex own = index_of[i];
    const std::array<InputRole, 4> numbered{UserInput{own}, Lifted{own}, ViewBase{own},
                                            Memory{own}};
    const int kind = rank(input.role);
    inputs.push_back({.value = values_.number(input.stand_in),
                      .tensor = kind == 1 || input.is_named ? input.real : at::Tensor(),
                      .role = numbered[kind],
                      .seen = observe(input),
                      .view_of = index(input.view_of),
                      .memory = index(input.memory),
                      .creation_meta = input.view_of ? creation_meta_of(input.real) : uint8_t{0},
                      .found_by = index_of[input.found_by],
                      .span = input.span});
  }
  return inputs;
}

}  // namespace foregrad
