// A value of the recording is a tensor object: two handles of one tensor are one value, an in-place
// operator gives the value it wrote. Tensors are matched by identity; one that autograd saved comes
// back as a new object without an operator call, and is matched by the trace tensor inside its
// wrapper.
#include "capture/recorder.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "capture/input_facts.h"
#include "capture/keys.h"
#include "capture/operator_checks.h"
#include "capture/outside_state.h"
#include "capture/record_again.h"
#include "capture/stand_in.h"
#include "capture/trace_tensor.h"
#include "capture/tracer.h"
#include "graph/refusal.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

namespace functional = at::functionalization::impl;

uint8_t creation_meta_of(const at::Tensor& view) {
  return static_cast<uint8_t>(
      torch::autograd::impl::get_view_autograd_meta(view)->get_creation_meta());
}

torch::autograd::Edge history_of(const at::Tensor& root) {
  return root.requires_grad() ? torch::autograd::impl::gradient_edge(root)
                              : torch::autograd::Edge();
}

bool has_history(const at::Tensor& root) { return root.requires_grad() && !root.is_leaf(); }

void refuse_unsupported_tensor(const at::Tensor& tensor, const std::string& where) {
  const bool is_plain = tensor.layout() == at::kStrided && tensor.device().is_cpu() &&
                        !tensor.is_quantized() && !tensor.is_nested() && !tensor.is_inference() &&
                        !functional::isFunctionalTensor(tensor);
  if (is_plain) return;
  throw Refusal(
      fmt::format("{}: a tensor of layout `{}` on device `{}` is not supported. Expected a strided "
                  "CPU tensor that is not quantized, "
                  "nested, or made in inference mode. Convert it outside the compiled function.",
                  where, c10::str(tensor.layout()), tensor.device().str()));
}

/// Calls `visit` for each tensor in the entry, list entries included.
template <class Visit>
void for_each_tensor(const c10::IValue& entry, Visit&& visit) {
  if (entry.isTensor()) {
    visit(entry.toTensor());
  } else if (entry.isTensorList()) {
    for (const at::Tensor& tensor : entry.toTensorVector()) visit(tensor);
  } else if (entry.isOptionalTensorList()) {
    for (const auto& tensor : entry.toOptionalTensorVector()) {
      if (tensor) visit(*tensor);
    }
  }
}

}  // namespace

/// The recording under construction.
class Recorder {
 public:
  Recorder(const RecordRequest& request, Tracer& tracer) : request_(request), tracer_(tracer) {
    for (const at::Tensor& tensor : request.declared) watch_.watch_grad(tensor);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  static thread_local Recorder* current;

  /// Makes the stand-ins of the arguments and of what is known to be captured.
  void place_inputs(const InputSet& inputs, size_t argument_count);
  at::Tensor stand_in_of(const at::Tensor& argument) const {
    return argument.defined() ? lifts_[lift_of_.at(argument.unsafeGetTensorImpl())].stand_in
                              : argument;
  }

  void handle(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  Recording finish(const std::vector<at::Tensor>& outputs);

 private:
  /// An input, in the order in which the recorder met it.
  struct Lift {
    at::Tensor real{};  // undefined: a memory
    at::Tensor stand_in;
    InputRole role;
    torch::autograd::Edge edge{};  // where its history begins; empty if it requires no grad
    std::optional<size_t> view_of{};
    std::optional<size_t> memory{};
    size_t found_by = 0;
    MemorySpan span{};
    TensorType type;
    int64_t traced_offset = 0;
    c10::Storage first_storage{};  // the functional storage that it lay in first
    size_t order = SIZE_MAX;       // among inputs of its kind; those that are found late come last
    size_t storage_bytes = 0;      // of `first_storage`
    bool is_named = false;         // an operator got the caller's tensor itself
    bool is_written = false;
    bool storage_changed = false;
  };
  /// A tensor that an operator is about to write.
  struct Written {
    at::Tensor tensor;
    at::Tensor root;  // it, or its base to autograd
    TensorType type;
    uint32_t version = 0;
    torch::autograd::Edge edge;
    c10::Storage storage;
    size_t generation = 0;
    uint64_t storage_changes = 0;
  };

  size_t add_lift(Lift lift);
  void place(const InputSet& inputs, uint32_t number, const InputRole& role);
  size_t lift_alone(const at::Tensor& real, const InputRole& role);
  void share_counter(const at::Tensor& real, const at::Tensor& stand_in);
  at::Tensor lift_captured(const at::Tensor& tensor, const c10::OperatorHandle& op);
  void lift_entry(c10::IValue& entry, const c10::OperatorHandle& op);
  ValueId number(const at::Tensor& tensor);
  ValueId value_of(const at::Tensor& tensor, const c10::OperatorHandle& op);
  Operand take(const c10::IValue& entry, const c10::OperatorHandle& op);
  void note_flag(const at::Tensor& tensor);
  void note_own_flag(const at::Tensor& view);
  void set_flag(ValueId value, bool requires_grad);
  Operand give(const c10::IValue& entry);
  void note_origins(const RecordedOp& op);
  RecordedWrite note_write(const Written& before, const c10::OperatorHandle& op);
  void mark_written(ValueId value, const c10::StorageImpl& storage);
  void check_outside_changes();
  InputObservation observe(const Lift& lift);
  std::vector<RecordedInput> make_inputs();
  uint32_t storage_number(const c10::Storage& storage);

  const RecordRequest& request_;
  Tracer& tracer_;
  Recording recording_;
  std::vector<Lift> lifts_;
  TensorWatch watch_;
  std::vector<bool> requires_grad_;                // by ValueId, as last seen
  std::vector<const c10::StorageImpl*> storages_;  // by ValueId, as operators left them
  std::vector<at::Tensor> kept_;  // a freed tensor's address would be taken for another value
  std::unordered_map<const c10::TensorImpl*, size_t> lift_of_;  // by the real tensor
  std::unordered_map<const c10::TensorImpl*, ValueId> by_identity_;
  std::unordered_map<uint32_t, ValueId> by_traced_value_;
  std::unordered_map<const void*, ValueId> by_counter_;
  std::unordered_map<uint32_t, size_t> origins_;  // values in the memory of an input, and which
  std::unordered_map<const void*, at::Tensor> real_counters_;  // a stand-in with that counter
  std::unordered_map<const c10::StorageImpl*, uint32_t> storage_numbers_;
};

thread_local Recorder* Recorder::current = nullptr;

size_t Recorder::add_lift(Lift lift) {
  const size_t index = lifts_.size();
  lift.first_storage = lift.stand_in.storage();
  lift.storage_bytes = lift.first_storage.nbytes();
  lift.traced_offset = lift.stand_in.storage_offset();
  if (lift.real.defined()) {
    // What `as_strided` may reach.
    if (!lift.memory && !lift.view_of)
      traced_inside(lift.stand_in)->meta().storage().set_nbytes(lift.real.storage().nbytes());
    lift_of_.emplace(lift.real.unsafeGetTensorImpl(), index);
    watch_.watch_data(lift.real);
    share_counter(lift.real, lift.stand_in);
    if (lift.real.requires_grad()) {
      if (lift.real.is_leaf() && !lift.view_of) {
        // A gradient that the function takes with respect to the real tensor ends at its own
        // accumulator.
        watch_.watch_grad(lift.real);
        lift.edge = {torch::autograd::impl::grad_accumulator(lift.real), 0};
        torch::autograd::impl::set_grad_accumulator(
            lift.stand_in, c10::weak_intrusive_ptr<torch::autograd::Node>(lift.edge.function));
      }
      lift.edge = torch::autograd::impl::gradient_edge(lift.stand_in);
    }
  }
  origins_[number(lift.stand_in).index] = index;
  lifts_.push_back(std::move(lift));
  return index;
}

/// Stand-ins share a version counter where the tensors that they stand for do.
void Recorder::share_counter(const at::Tensor& real, const at::Tensor& stand_in) {
  const auto [known, is_new] = real_counters_.try_emplace(version_counter_identity(real), stand_in);
  if (is_new) return;
  stand_in.unsafeGetTensorImpl()->set_version_counter(
      known->second.unsafeGetTensorImpl()->version_counter());
}

size_t Recorder::lift_alone(const at::Tensor& real, const InputRole& role) {
  Lift lift{.real = real, .stand_in = {}, .role = role, .type = type_of(real)};
  lift.stand_in = make_stand_in(tracer_, lift.type, role, real.requires_grad(), real.is_leaf());
  return add_lift(std::move(lift));
}

void Recorder::place(const InputSet& inputs, uint32_t number, const InputRole& role) {
  const at::Tensor& real = inputs.tensors[number];
  const Placement placement = request_.arrangement.of(number);
  Lift lift{.real = real, .stand_in = {}, .role = role, .type = type_of(real), .order = number};
  if (placement.view_of) {
    const Lift& base =
        lifts_[lift_of_.at(inputs.tensors[*placement.view_of].unsafeGetTensorImpl())];
    lift.view_of = static_cast<size_t>(&base - lifts_.data());
    lift.stand_in = place_as_view(base.stand_in, lift.type, offset_between(base.type, lift.type),
                                  creation_meta_of(real));
    if (lift.stand_in.requires_grad() != real.requires_grad() ||
        lift.stand_in.is_leaf() != real.is_leaf()) {
      throw Refusal(fmt::format(
          "input {}: it is a view, is written, and requires grad otherwise than its base, which is "
          "not supported. Pass the base.",
          number));
    }
  } else if (placement.memory) {
    const Lift& memory = lifts_[*placement.memory];
    const int64_t start =
        memory.span.is_whole_storage
            ? 0
            : inputs.facts[memory.span.anchor].type.storage_offset + memory.span.start;
    lift.memory = *placement.memory;
    lift.stand_in = place_in_memory(memory.stand_in, lift.type, lift.type.storage_offset - start,
                                    real.requires_grad(), real.is_leaf());
  } else {
    lift.stand_in = make_stand_in(tracer_, lift.type, role, real.requires_grad(), real.is_leaf());
  }
  add_lift(std::move(lift));
}

void Recorder::place_inputs(const InputSet& inputs, size_t argument_count) {
  const Arrangement& arrangement = request_.arrangement;
  const auto role_of = [&](uint32_t i) -> InputRole {
    if (!inputs.facts[i].is_argument) return ViewBase{};
    return i < argument_count ? InputRole(UserInput{}) : InputRole(Lifted{});
  };
  for (const MemorySpan& span : arrangement.memories) {  // memory k is lift k
    add_lift({.stand_in = make_stand_in(tracer_, span.type, Memory{}, false, true),
              .role = Memory{},
              .span = span,
              .type = span.type});
  }
  for (const bool views : {false, true}) {
    for (uint32_t i = 0; i < inputs.facts.size(); ++i) {
      if (arrangement.of(i).view_of.has_value() != views) continue;
      if (inputs.facts[i].is_argument || arrangement.is_base(i)) place(inputs, i, role_of(i));
    }
  }
  for (size_t k = 0; k < arrangement.memories.size(); ++k) {
    const auto& anchor = inputs.tensors[arrangement.memories[k].anchor];
    lifts_[k].found_by = lift_of_.at(anchor.unsafeGetTensorImpl());
  }
  for (uint32_t i = 0; i < inputs.facts.size(); ++i) {
    if (!inputs.facts[i].is_argument || !inputs.facts[i].view_of) continue;
    const auto base = lift_of_.find(inputs.tensors[*inputs.facts[i].view_of].unsafeGetTensorImpl());
    if (base != lift_of_.end() && std::holds_alternative<ViewBase>(lifts_[base->second].role))
      lifts_[base->second].found_by = lift_of_.at(inputs.tensors[i].unsafeGetTensorImpl());
  }
}

at::Tensor Recorder::lift_captured(const at::Tensor& tensor, const c10::OperatorHandle& op) {
  if (!tensor.defined() || is_wrapper(tensor)) return tensor;
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
  const auto known = lift_of_.find(tensor.unsafeGetTensorImpl());
  if (known != lift_of_.end()) {
    // An argument that the function also reaches by capture is only the same tensor by chance: it
    // is held, for a guard.
    lifts_[known->second].is_named = true;
    return lifts_[known->second].stand_in;
  }
  const std::string where = fmt::format("`{}`", operator_text(op));
  refuse_unsupported_tensor(tensor, where);
  if (request_.on_capture) request_.on_capture(tensor, operator_text(op));
  const TensorType type = type_of(tensor);
  if (type.is_dense_and_non_overlapping()) return lifts_[lift_alone(tensor, Lifted{})].stand_in;
  // A write would close the gaps between its elements.
  MemorySpan span{.type = {.dtype = type.dtype, .sizes = {1}, .strides = {1}}};
  for (size_t d = 0; d < type.sizes.size(); ++d)
    span.type.sizes[0] += (type.sizes[d] - 1) * type.strides[d];
  const size_t memory =
      add_lift({.stand_in = make_stand_in(tracer_, span.type, Memory{}, false, true),
                .role = Memory{},
                .span = span,
                .type = span.type});
  const size_t own =
      add_lift({.real = tensor,
                .stand_in = place_in_memory(lifts_[memory].stand_in, type, 0,
                                            tensor.requires_grad(), tensor.is_leaf()),
                .role = Lifted{},
                .memory = memory,
                .type = type});
  lifts_[memory].found_by = own;
  return lifts_[own].stand_in;
}

void Recorder::lift_entry(c10::IValue& entry, const c10::OperatorHandle& op) {
  if (entry.isTensor()) {
    entry = lift_captured(entry.toTensor(), op);
  } else if (entry.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : entry.toTensorVector())
      list.push_back(lift_captured(tensor, op));
    entry = std::move(list);
  } else if (entry.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : entry.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional(lift_captured(*tensor, op)) : std::nullopt);
    }
    entry = std::move(list);
  }
}

/// `requires_grad_` and `set_requires_grad` call no operator: one is recorded in their place,
/// before the next operator that may tell.
void Recorder::note_flag(const at::Tensor& tensor) {
  note_own_flag(tensor);
  const at::Tensor root = tensor.is_view() ? base_of(tensor) : tensor;
  const auto known = by_identity_.find(root.unsafeGetTensorImpl());
  if (known == by_identity_.end()) return;
  const bool requires_grad = root.requires_grad();
  if (requires_grad_[known->second.index] == requires_grad || !root.is_leaf()) return;
  set_flag(known->second, requires_grad);
}

/// A view may be made a leaf of its own, though its base requires no grad.
void Recorder::note_own_flag(const at::Tensor& view) {
  if (!view.is_view() || !view.requires_grad() || view._base().requires_grad()) return;
  const auto known = by_identity_.find(view.unsafeGetTensorImpl());
  if (known != by_identity_.end() && !requires_grad_[known->second.index])
    set_flag(known->second, true);
}

void Recorder::set_flag(ValueId value, bool requires_grad) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::requires_grad_", "");
  requires_grad_[value.index] = requires_grad;
  RecordedOp recorded{.op = op,
                      .args = {value, c10::IValue(requires_grad)},
                      .results = {value},
                      .modes = current_modes(),
                      .history = requires_grad ? 0U : 2U};
  recorded.writes.push_back({.value = value,
                             .counter = value,
                             .version_advance = 0,
                             .rewritten = std::nullopt,
                             .has_history = false,
                             .data = false,
                             .storage = false});
  recording_.ops.push_back(std::move(recorded));
}

ValueId Recorder::number(const at::Tensor& tensor) {
  auto [found, is_new] = by_identity_.try_emplace(tensor.unsafeGetTensorImpl());
  if (is_new) {
    found->second = ValueId{recording_.value_count++};
    kept_.push_back(tensor);
    storages_.push_back(tensor.storage().unsafeGetStorageImpl());
    requires_grad_.push_back(tensor.requires_grad());
    recording_.starts_with_history.push_back(!tensor.is_view() && has_history(tensor));
    const ValueId value = found->second;
    const auto [counter, is_new_counter] =
        by_counter_.try_emplace(version_counter_identity(tensor), value);
    if (!is_new_counter) recording_.counters.emplace(value, counter->second);
    if (tensor.is_view()) recording_.view_bases.emplace(value, number(base_of(tensor)));
    if (is_new_counter && tensor._version() > 0)
      recording_.first_versions.emplace(value, static_cast<uint32_t>(tensor._version()));
    // The recursion may have moved it.
    if (const auto* traced = traced_inside(tensor)) by_traced_value_[traced->value().index] = value;
    return value;
  }
  if (const auto* traced = traced_inside(tensor))
    by_traced_value_[traced->value().index] = found->second;
  return found->second;
}

ValueId Recorder::value_of(const at::Tensor& tensor, const c10::OperatorHandle& op) {
  if (auto found = by_identity_.find(tensor.unsafeGetTensorImpl()); found != by_identity_.end()) {
    return found->second;
  }
  if (const auto* traced = traced_inside(tensor)) {
    auto found = by_traced_value_.find(traced->value().index);
    if (found != by_traced_value_.end()) return found->second;
  }
  throw Refusal(
      fmt::format("`{}`: a tensor `{}` was made in a way that tracing does not see. Expected "
                  "tensors made by operators.",
                  operator_text(op), to_text(type_of(tensor))));
}

Operand Recorder::take(const c10::IValue& entry, const c10::OperatorHandle& op) {
  if (entry.isTensor()) {
    const at::Tensor& tensor = entry.toTensor();
    if (!tensor.defined()) return c10::IValue();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return entry;
    return value_of(tensor, op);
  }
  ValueList values;
  if (entry.isTensorList()) {
    for (const at::Tensor& tensor : entry.toTensorVector()) {
      values.push_back(tensor.defined() ? std::optional(value_of(tensor, op)) : std::nullopt);
    }
    return values;
  }
  if (entry.isOptionalTensorList()) {
    for (const auto& tensor : entry.toOptionalTensorVector()) {
      values.push_back(tensor && tensor->defined() ? std::optional(value_of(*tensor, op))
                                                   : std::nullopt);
    }
    return values;
  }
  return entry;
}

Operand Recorder::give(const c10::IValue& entry) {
  if (entry.isTensor()) {
    return entry.toTensor().defined() ? Operand(number(entry.toTensor())) : Operand(c10::IValue());
  }
  if (entry.isTensorList()) {
    ValueList values;
    for (const at::Tensor& tensor : entry.toTensorVector()) {
      values.push_back(tensor.defined() ? std::optional(number(tensor)) : std::nullopt);
    }
    return values;
  }
  return entry;
}

/// Follows declared views from inputs on.
void Recorder::note_origins(const RecordedOp& op) {
  if (origins_.empty()) return;
  for (const AliasPair& pair : memory_aliases(op.op)) {
    for_each_value(op.args[pair.argument], [&](ValueId argument) {
      const auto origin = origins_.find(argument.index);
      if (origin == origins_.end()) return;
      const size_t input = origin->second;
      for_each_value(op.results[pair.result],
                     [&](ValueId result) { origins_.try_emplace(result.index, input); });
    });
  }
}

/// The input whose elements were written; if it is not known, each in the storage.
void Recorder::mark_written(ValueId value, const c10::StorageImpl& storage) {
  if (const auto origin = origins_.find(value.index); origin != origins_.end()) {
    lifts_[origin->second].is_written = true;
    return;
  }
  for (Lift& lift : lifts_) {
    if (lift.first_storage.unsafeGetStorageImpl() == &storage) lift.is_written = true;
  }
}

RecordedWrite Recorder::note_write(const Written& before, const c10::OperatorHandle& op) {
  const at::Tensor& tensor = before.tensor;
  const ValueId value = number(tensor);  // its traced value is a new one
  // libtorch advances the versions of a list of functional wrappers in no kernel.
  const bool changes_view = op.hasTag(at::Tag::inplace_view);
  auto& storage = functional_storage(before.storage);
  RecordedWrite write{.value = value,
                      .counter = by_counter_.at(version_counter_identity(tensor)),
                      .version_advance = 0,
                      .rewritten = std::nullopt,
                      .has_history = false,
                      .data = storage.generation() != before.generation,
                      .storage = false};
  if (write.data && tensor._version() == before.version)
    torch::autograd::impl::bump_version(tensor);
  write.version_advance = static_cast<uint32_t>(tensor._version()) - before.version;
  if (!(history_of(before.root) == before.edge)) {
    write.rewritten = number(before.root);
    write.has_history = has_history(before.root);
    requires_grad_[write.rewritten->index] = before.root.requires_grad();
  }
  const TensorType now = type_of(tensor);
  const auto* wrapper = functional::unsafeGetFunctionalWrapper(tensor);
  write.storage = tensor.storage().unsafeGetStorageImpl() != &storage ||
                  const_cast<at::FunctionalTensorWrapper*>(wrapper)->storage_changed_counter() !=
                      before.storage_changes ||
                  now.numel() != before.type.numel();
  storages_[value.index] = tensor.storage().unsafeGetStorageImpl();
  const auto origin = origins_.find(value.index);
  if (write.storage && origin != origins_.end() && lifts_[origin->second].stand_in.is_same(tensor))
    lifts_[origin->second].storage_changed = true;
  if (write.data) mark_written(value, storage);
  if (write.storage) origins_.erase(value.index);
  if (!write.data) return write;
  // Functionalization gives a written tensor the new value's strides; eager keeps the old ones.
  if (!changes_view && !write.storage && now.strides != before.type.strides) {
    throw Refusal(fmt::format(
        "`{}`: an in-place write into a tensor `{}` with gaps is not supported yet. Expected a "
        "dense tensor.",
        operator_text(op), to_text(before.type)));
  }
  return write;
}

void Recorder::handle(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const size_t begin = stack.size() - op.schema().arguments().size();
  RecordedOp recorded{.op = op, .args = {}, .results = {}, .modes = current_modes(), .history = 0};
  recorded.args.reserve(stack.size() - begin);
  std::vector<Written> written;
  for (size_t i = begin; i < stack.size(); ++i) {
    lift_entry(stack[i], op);
    recorded.args.push_back(take(stack[i], op));
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !functional::isFunctionalTensor(tensor)) return;
      note_flag(tensor);
      fold_history(recorded.history, tensor);
    });
    if (!is_written(op, i - begin)) continue;
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !functional::isFunctionalTensor(tensor)) return;
      const at::Tensor root = tensor.is_view() ? base_of(tensor) : tensor;
      written.push_back(
          {.tensor = tensor,
           .root = root,
           .type = type_of(tensor),
           .version = static_cast<uint32_t>(tensor._version()),
           .edge = history_of(root),
           .storage = tensor.storage(),
           .generation = functional_storage(tensor.storage()).generation(),
           .storage_changes =
               functional::unsafeGetFunctionalWrapper(tensor)->storage_changed_counter()});
    });
  }
  struct Unwritten {
    at::Tensor tensor;
    uint32_t version;
    size_t generation;
  };
  std::vector<Unwritten> unwritten;
  for (size_t i = begin; i < stack.size(); ++i) {
    if (is_written(op, i - begin)) continue;
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !functional::isFunctionalTensor(tensor)) return;
      unwritten.push_back({tensor, static_cast<uint32_t>(tensor._version()),
                           functional_storage(tensor.storage()).generation()});
    });
  }
  const bool writes = is_mutating(op);
  if (!written.empty() && !op.hasTag(at::Tag::inplace_view)) check_overlap(op, stack);
  op.callBoxed(&stack);
  std::unordered_set<uint32_t> counted;
  for (const Written& before : written) {
    RecordedWrite write = note_write(before, op);
    if (!counted.insert(write.counter.index).second) write.version_advance = 0;
    recorded.writes.push_back(write);
  }
  // A composite operator may write what its schema does not say: train-mode batch norm.
  for (const auto& [tensor, version, generation] : unwritten) {
    const auto advance = static_cast<uint32_t>(tensor._version()) - version;
    const bool data = functional_storage(tensor.storage()).generation() != generation;
    if (advance == 0 && !data) continue;
    const ValueId value = number(tensor);
    const ValueId counter = by_counter_.at(version_counter_identity(tensor));
    if (data) mark_written(value, functional_storage(tensor.storage()));
    recorded.writes.push_back(
        {.value = value,
         .counter = counter,
         .version_advance = counted.insert(counter.index).second ? advance : 0,
         .rewritten = std::nullopt,
         .has_history = false,
         .data = true,
         .storage = false});
  }
  if (written.empty() && unwritten.empty()) give_version(op, recorded.args, stack);
  bool gives_tensors = false;
  for (size_t i = begin; i < stack.size(); ++i) {
    recorded.results.push_back(give(stack[i]));
    gives_tensors |= !std::holds_alternative<c10::IValue>(recorded.results.back());
  }
  note_origins(recorded);
  if (!gives_tensors && !writes && op.schema().returns().empty()) {
    throw Refusal(
        fmt::format("`{}`: it returns nothing and its schema declares no write, so its effect "
                    "can't be recorded. Call it outside the "
                    "compiled function.",
                    operator_text(op)));
  }
  if (gives_tensors || writes) recording_.ops.push_back(std::move(recorded));
}

uint32_t Recorder::storage_number(const c10::Storage& storage) {
  const auto next = static_cast<uint32_t>(storage_numbers_.size());
  return storage_numbers_.try_emplace(storage.unsafeGetStorageImpl(), next).first->second;
}

InputObservation Recorder::observe(const Lift& lift) {
  const at::Tensor& now = lift.stand_in;
  functional::sync(now);
  const Lift& root = lift.view_of ? lifts_[*lift.view_of] : lift;
  const bool is_real = lift.real.defined();
  InputObservation seen{.before = lift.type,
                        .after = type_of(now),
                        .traced_offset = lift.traced_offset,
                        .requires_grad_before = is_real && lift.real.requires_grad(),
                        .requires_grad_after = now.requires_grad(),
                        .is_leaf = !is_real || lift.real.is_leaf(),
                        .is_leaf_after = now.is_leaf(),
                        .is_view = is_real && lift.real.is_view(),
                        .data_mutated = lift.is_written,
                        .storage_changed = lift.storage_changed,
                        .same_history = !is_real || history_of(root.stand_in) == root.edge,
                        .version_advance = static_cast<uint32_t>(now._version()),
                        .counter = by_counter_.at(version_counter_identity(now)),
                        .storage_before = storage_number(lift.first_storage),
                        .storage_after = storage_number(now.storage())};
  if (is_real) seen.storage_bytes = static_cast<int64_t>(lift.real.storage().nbytes());
  if (lift.first_storage.nbytes() != lift.storage_bytes)
    seen.resized_to = static_cast<int64_t>(lift.first_storage.nbytes());
  // A written value begins anywhere; the effects move an input as eager does.
  seen.after.storage_offset = lift.type.storage_offset;
  return seen;
}

std::vector<RecordedInput> Recorder::make_inputs() {
  // Arguments, captured tensors, view bases, memories.
  const auto rank = [](const InputRole& role) {
    return std::holds_alternative<UserInput>(role)  ? 0
           : std::holds_alternative<Lifted>(role)   ? 1
           : std::holds_alternative<ViewBase>(role) ? 2
                                                    : 3;
  };
  std::vector<size_t> order(lifts_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(
      order, {}, [&](size_t i) { return std::pair(rank(lifts_[i].role), lifts_[i].order); });
  std::vector<InputIndex> index_of(lifts_.size());
  for (uint32_t i = 0; i < order.size(); ++i) index_of[order[i]] = {i};
  const auto index = [&](std::optional<size_t> lift) {
    return lift ? std::optional(index_of[*lift]) : std::nullopt;
  };
  std::vector<RecordedInput> inputs;
  for (const size_t i : order) {
    const Lift& lift = lifts_[i];
    const InputIndex own = index_of[i];
    const std::array<InputRole, 4> numbered{UserInput{own}, Lifted{own}, ViewBase{own},
                                            Memory{own}};
    const int kind = rank(lift.role);
    inputs.push_back({.value = number(lift.stand_in),
                      .tensor = kind == 1 || lift.is_named ? lift.real : at::Tensor(),
                      .role = numbered[kind],
                      .seen = observe(lift),
                      .view_of = index(lift.view_of),
                      .memory = index(lift.memory),
                      .creation_meta = lift.view_of ? creation_meta_of(lift.real) : uint8_t{0},
                      .found_by = index_of[lift.found_by],
                      .span = lift.span});
  }
  return inputs;
}

void Recorder::check_outside_changes() {
  watch_.refuse_changes();
  for (size_t i = 0; i < kept_.size(); ++i) {
    const at::Tensor& tensor = kept_[i];
    note_flag(tensor);
    if (functional::isFunctionalTensor(tensor) &&
        tensor.storage().unsafeGetStorageImpl() != storages_[i]) {
      throw Refusal(
          fmt::format("the function gives a tensor `{}` other data by `set_data`, which is not "
                      "supported. Expected writes in place, or `set_`.",
                      to_text(type_of(tensor))));
    }
    const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
    if (meta && (!meta->hooks_.empty() || meta->retains_grad_)) {
      throw Refusal(
          fmt::format("a hook or `retain_grad` on a tensor `{}` inside the function is not "
                      "supported. Expected hooks on the function's "
                      "inputs and outputs.",
                      to_text(type_of(tensor))));
    }
  }
}

Recording Recorder::finish(const std::vector<at::Tensor>& outputs) {
  check_outside_changes();
  for (size_t i = 0; i < outputs.size(); ++i) {
    at::Tensor output = outputs[i];
    OutputObservation seen;
    if (output.defined()) {
      // The function may return a tensor that it only captured.
      if (!functional::isFunctionalTensor(output)) {
        refuse_unsupported_tensor(output, fmt::format("output {}", i));
        const auto known = lift_of_.find(output.unsafeGetTensorImpl());
        const size_t lift = known != lift_of_.end() ? known->second : lift_alone(output, Lifted{});
        lifts_[lift].is_named = true;
        output = lifts_[lift].stand_in;
      }
      functional::sync(output);
      auto value = by_identity_.find(output.unsafeGetTensorImpl());
      if (value == by_identity_.end()) {
        throw Refusal(fmt::format("output {}: it was made in a way that tracing does not see.", i));
      }
      seen = {.defined = true,
              .type = type_of(output),
              .requires_grad = output.requires_grad(),
              .is_leaf = output.is_leaf(),
              .is_view = output.is_view(),
              .storage = storage_number(output.storage()),
              .value = value->second,
              .version = static_cast<uint32_t>(output._version())};
    }
    recording_.outputs.push_back({seen});
  }
  recording_.inputs = make_inputs();
  return std::move(recording_);
}

bool is_tracing() { return Tracer::current() != nullptr; }

void handle_front_operator(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/,
                           torch::jit::Stack* stack) {
  BelowFrontScope below;
  if (Recorder::current) {
    Recorder::current->handle(op, *stack);
  } else {
    op.callBoxed(stack);
  }
}

namespace {

class CurrentRecorder {
 public:
  explicit CurrentRecorder(Recorder& recorder)
      : previous_(std::exchange(Recorder::current, &recorder)) {}
  CurrentRecorder(const CurrentRecorder&) = delete;
  CurrentRecorder& operator=(const CurrentRecorder&) = delete;
  ~CurrentRecorder() { Recorder::current = previous_; }

 private:
  Recorder* previous_;
};

}  // namespace

RecordResult record(const RecordRequest& request) {
  if (is_tracing()) throw Refusal("a trace can't begin inside a trace of the same thread");
  for (uint32_t i = 0; i < request.arguments.size(); ++i) {
    if (request.arguments[i].defined())
      refuse_unsupported_tensor(request.arguments[i], fmt::format("argument {}", i));
  }
  std::vector<at::Tensor> known = distinct_tensors(request.arguments);
  const size_t argument_count = known.size();
  known.insert(known.end(), request.captured.begin(), request.captured.end());
  Tracer tracer(Tracer::Keep::ShapesOnly);
  Tracer::Scope tracing(tracer);
  Recorder recorder(request, tracer);
  CurrentRecorder current(recorder);
  ModeGuard modes;
  recorder.place_inputs(gather_inputs(known), argument_count);
  std::vector<at::Tensor> stand_ins;
  for (const at::Tensor& argument : request.arguments)
    stand_ins.push_back(recorder.stand_in_of(argument));
  std::vector<at::Tensor> outputs;
  const GeneratorWatch generator;
  {
    TracingScope scope(TracingScope::Level::Recording);
    outputs = request.run(stand_ins);
    if (modes.changed()) {
      throw Refusal(
          "the function leaves grad mode or autocast changed. Restore it before returning, with a "
          "guard object.");
    }
  }
  generator.refuse_changes();
  TracingScope scope(TracingScope::Level::Replaying);
  RecordResult result{.recording = recorder.finish(outputs), .last_resort_shapes = {}};
  result.recording.default_dtype = c10::get_default_dtype_as_scalartype();
  result.last_resort_shapes = tracer.last_resort_shapes();
  return result;
}

}  // namespace foregrad
