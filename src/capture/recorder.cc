#include "capture/recorder.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "capture/backward_recorder.h"
#include "capture/custom_nodes.h"
#include "capture/hooks.h"
#include "capture/input_facts.h"
#include "capture/input_table.h"
#include "capture/keys.h"
#include "capture/operator_checks.h"
#include "capture/outside_state.h"
#include "capture/record_again.h"
#include "capture/trace_tensor.h"
#include "capture/tracer.h"
#include "capture/transform_layers.h"
#include "capture/value_table.h"
#include "capture/view_history.h"
#include "capture/written_layout.h"
#include "capture/written_memory.h"
#include "graph/call.h"
#include "graph/refusal.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

namespace functional = at::functionalization::impl;

bool has_history(const at::Tensor& root) { return root.requires_grad() && !root.is_leaf(); }

/// Eager's backward throws in ways of its own for a view that was made without grad mode, of a
/// tensor that requires grad, and is used with it: it is a leaf that nobody sees.
void refuse_untracked_view(const at::Tensor& tensor, const c10::OperatorHandle& op) {
  if (!c10::GradMode::is_enabled() || !tensor.is_view() || !tensor.requires_grad() ||
      !tensor.is_leaf())
    return;
  if (torch::autograd::impl::get_view_autograd_meta(tensor)->get_creation_meta() !=
      torch::autograd::CreationMeta::NO_GRAD_MODE)
    return;
  throw Refusal(
      fmt::format("`{}`: it takes a view `{}` that was made without grad mode of a tensor that "
                  "requires grad. Expected one that is made with grad mode, or detached.",
                  operator_text(op), to_text(type_of(tensor))));
}

/// What is made of data that is in no tensor is new at each call: no captured tensor.
void refuse_fresh_data(const c10::OperatorHandle& op) {
  static const auto lift = c10::Dispatcher::singleton().findSchemaOrThrow("aten::lift_fresh", "");
  if (op.operator_name() != lift.operator_name()) return;
  throw Refusal(
      "the function makes a tensor of data that is in no tensor: of a list, or an array. Expected "
      "tensors made by operators. Make it outside of the function and declare it, or by `full`.");
}

}  // namespace

/// The recording under construction.
class Recorder {
 public:
  Recorder(const RecordRequest& request, bool in_inference_mode, Tracer& tracer,
           const GeneratorWatch& generator)
      : request_(request),
        in_inference_mode_(in_inference_mode),
        generator_(generator),
        inputs_(tracer, values_),
        backwards_(recording_, tracer, values_, inputs_),
        custom_nodes_(recording_, values_, inputs_, backwards_),
        hooks_(recording_, values_, inputs_, backwards_) {
    for (const at::Tensor& tensor : request.declared) {
      inputs_.watch().watch_grad(tensor);
      inputs_.watch().watch_hooks(tensor);
    }
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  static thread_local Recorder* current;

  InputTable& inputs() { return inputs_; }
  void handle(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  Recording finish(const std::vector<at::Tensor>& outputs);

 private:
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
    bool is_in_list = false;
  };

  at::Tensor lift_captured(const at::Tensor& tensor, const c10::OperatorHandle& op);
  void note_flag(const at::Tensor& tensor);
  void note_own_flag(const at::Tensor& view);
  void set_flag(ValueId value, bool requires_grad);
  RecordedWrite note_write(const Written& before, const c10::OperatorHandle& op);
  void note_custom_results();
  static void refuse_inference_mode(const ModeState& modes, const c10::OperatorHandle& op);
  void check_outside_changes();
  OutputObservation observe(at::Tensor output, const std::string& what);
  void refuse_retained_gradients(std::vector<at::Tensor> seen);

  const RecordRequest& request_;
  const bool in_inference_mode_;  // is the call
  const GeneratorWatch& generator_;
  Recording recording_;
  ValueTable values_{recording_};
  InputTable inputs_;
  BackwardRecorder backwards_;
  CustomNodes custom_nodes_;
  WrittenMemory memory_;
  Hooks hooks_;
  std::vector<ValueId> untracked_;  // results of the operators without grad mode just before
};

thread_local Recorder* Recorder::current = nullptr;

at::Tensor Recorder::lift_captured(const at::Tensor& tensor, const c10::OperatorHandle& op) {
  if (!tensor.defined() || is_wrapper(tensor)) return tensor;
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
  if (!inputs_.is_known(tensor)) {
    refuse_fresh_data(op);
    refuse_unsupported_tensor(tensor, in_inference_mode_, fmt::format("`{}`", operator_text(op)));
    if (request_.on_capture) request_.on_capture(tensor, operator_text(op));
  }
  return inputs_.capture(tensor);
}

/// `requires_grad_` and `set_requires_grad` call no operator: one is recorded in their place,
/// before the next operator that may tell.
void Recorder::note_flag(const at::Tensor& tensor) {
  note_own_flag(tensor);
  const at::Tensor root = tensor.is_view() ? base_of(tensor) : tensor;
  custom_nodes_.note(tensor);
  if (tensor.is_view()) custom_nodes_.note(root);
  hooks_.note(tensor);
  const auto known = values_.find(root);
  if (!known || !root.is_leaf() || values_.requires_grad(*known) == root.requires_grad()) return;
  set_flag(*known, root.requires_grad());
}

/// A view may be made a leaf of its own, though its base requires no grad.
void Recorder::note_own_flag(const at::Tensor& view) {
  if (!view.is_view() || !has_own_flag(view)) return;
  const auto known = values_.find(view);
  if (!known || values_.has_own_flag(*known)) return;
  values_.note_own_flag(*known);
  set_flag(*known, true);
}

void Recorder::set_flag(ValueId value, bool requires_grad) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::requires_grad_", "");
  values_.note_requires_grad(value, requires_grad);
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

RecordedWrite Recorder::note_write(const Written& before, const c10::OperatorHandle& op) {
  const at::Tensor& tensor = before.tensor;
  const ValueId value = values_.number(tensor);  // its traced value is a new one
  // libtorch advances the versions of a list of functional wrappers in no kernel.
  const bool changes_view = op.hasTag(at::Tag::inplace_view);
  auto& storage = functional_storage(before.storage);
  RecordedWrite write{.value = value,
                      .counter = values_.counter_of(tensor),
                      .version_advance = 0,
                      .rewritten = std::nullopt,
                      .has_history = false,
                      .data = storage.generation() != before.generation,
                      .storage = false};
  if (write.data && before.is_in_list && tensor._version() == before.version)
    torch::autograd::impl::bump_version(tensor);
  write.version_advance = static_cast<uint32_t>(tensor._version()) - before.version;
  values_.note_version(value);
  if (!(history_of(before.root) == before.edge)) {
    write.rewritten = values_.number(before.root);
    write.has_history = has_history(before.root);
    values_.note_requires_grad(*write.rewritten, before.root.requires_grad());
    values_.note_node(*write.rewritten);
  }
  const TensorType now = type_of(tensor);
  const auto* wrapper = functional::unsafeGetFunctionalWrapper(tensor);
  write.storage = tensor.storage().unsafeGetStorageImpl() != &storage ||
                  const_cast<at::FunctionalTensorWrapper*>(wrapper)->storage_changed_counter() !=
                      before.storage_changes ||
                  now.numel() != before.type.numel();
  values_.note_storage(value);
  if (write.data) inputs_.note_data(value, storage);
  if (write.storage) inputs_.note_other_storage(value, tensor);
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

/// A custom function's forward runs without grad mode. Its results are noted before an operator
/// may change the histories that they lead to. Where that one runs without grad mode too, only the
/// last few are looked at: a forward may be long.
void Recorder::note_custom_results() {
  if (untracked_.empty()) return;
  constexpr size_t kFew = 16;
  const bool notes_all = c10::GradMode::is_enabled();
  const size_t first = notes_all ? 0 : untracked_.size() - std::min(untracked_.size(), kFew);
  for (size_t i = first; i < untracked_.size(); ++i)
    custom_nodes_.note(at::Tensor(values_.tensors()[untracked_[i].index]));
  if (notes_all) untracked_.clear();
}

void Recorder::refuse_inference_mode(const ModeState& modes, const c10::OperatorHandle& op) {
  if (!modes.inference_mode) return;
  throw Refusal(fmt::format(
      "`{}`: it is called in inference mode, which the function enters. Expected a function that "
      "runs without grad mode instead, or is called in inference mode as a whole.",
      operator_text(op)));
}

void Recorder::handle(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  // In inference mode autograd sees nothing, whatever the grad mode.
  std::optional<c10::AutoGradMode> no_grad;
  if (in_inference_mode_) no_grad.emplace(false);
  note_custom_results();
  const size_t begin = stack.size() - op.schema().arguments().size();
  RecordedOp recorded{.op = op, .args = {}, .results = {}, .modes = current_modes(), .history = 0};
  refuse_inference_mode(recorded.modes, op);
  if (is_random(op)) {  // what was seeded may be put back afterwards
    const OutsideTracingScope outside;
    generator_.refuse_changes();
  }
  recorded.args.reserve(stack.size() - begin);
  for (size_t i = begin; i < stack.size(); ++i)
    change_tensors(stack[i], [&](const at::Tensor& tensor) { return lift_captured(tensor, op); });
  for (size_t i = begin; i < stack.size(); ++i) {
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (tensor.defined() && functional::isFunctionalTensor(tensor)) values_.adopt(tensor);
    });
  }
  const auto outs = infer_outs(op, stack);
  std::vector<Written> written;
  for (size_t i = begin; i < stack.size(); ++i) {
    recorded.args.push_back(values_.take(stack[i], op));
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !functional::isFunctionalTensor(tensor)) return;
      memory_.take_back(tensor, recording_.ops);
      note_flag(tensor);
      refuse_untracked_view(tensor, op);
      fold_history(recorded.history, tensor);
    });
    if (!is_written(op, i - begin)) continue;
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !functional::isFunctionalTensor(tensor)) return;
      const at::Tensor root = tensor.is_view() ? base_of(tensor) : tensor;
      hooks_.note_all(tensor.storage().unsafeGetStorageImpl());
      written.push_back(
          {.tensor = tensor,
           .root = root,
           .type = type_of(tensor),
           .version = static_cast<uint32_t>(tensor._version()),
           .edge = history_of(root),
           .storage = tensor.storage(),
           .generation = functional_storage(tensor.storage()).generation(),
           .storage_changes =
               functional::unsafeGetFunctionalWrapper(tensor)->storage_changed_counter(),
           .is_in_list = !stack[i].isTensor()});
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
  const WrittenLayouts layouts(op, stack);
  follow_views(std::span(stack).subspan(begin));
  op.callBoxed(&stack);
  layouts.keep();
  check_outs(op, outs);
  follow_views(std::span(stack).subspan(begin));
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
    const ValueId value = values_.number(tensor);
    const ValueId counter = values_.counter_of(tensor);
    values_.note_version(value);
    if (data) inputs_.note_data(value, functional_storage(tensor.storage()));
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
  if (gives_uninitialised(op)) memory_.give(stack[begin].toTensor(), recording_.ops.size());
  bool gives_tensors = false;
  for (size_t i = begin; i < stack.size(); ++i) {
    recorded.results.push_back(values_.give(stack[i]));
    gives_tensors |= !std::holds_alternative<c10::IValue>(recorded.results.back());
    if (!recorded.modes.grad_mode)
      for_each_value(recorded.results.back(), [&](ValueId value) { untracked_.push_back(value); });
  }
  inputs_.note_views(recorded);
  const bool is_kept = gives_tensors || writes || has_declared_effect(op);
  if (!is_kept && op.schema().returns().empty()) {
    throw Refusal(
        fmt::format("`{}`: it returns nothing and its schema declares no write, so its effect "
                    "can't be recorded. Declare it (`foregrad::declare_effect`), or call it "
                    "outside the compiled function.",
                    operator_text(op)));
  }
  if (is_kept) recording_.ops.push_back(std::move(recorded));
}

void Recorder::check_outside_changes() {
  memory_.finish(recording_.ops);
  inputs_.watch().refuse_changes();
  note_custom_results();
  for (uint32_t i = 0; i < values_.tensors().size(); ++i) {
    const at::Tensor tensor = values_.tensors()[i];  // more may come
    note_flag(tensor);
    if (functional::isFunctionalTensor(tensor) &&
        tensor.storage().unsafeGetStorageImpl() != values_.storage(ValueId{i})) {
      throw Refusal(
          fmt::format("the function gives a tensor `{}` other data by `set_data`, which is not "
                      "supported. Expected writes in place, or `set_`.",
                      to_text(type_of(tensor))));
    }
  }
}

OutputObservation Recorder::observe(at::Tensor output, const std::string& what) {
  if (!output.defined()) return {};
  // The function may return a tensor that it only captured.
  if (!functional::isFunctionalTensor(output)) {
    refuse_unsupported_tensor(output, in_inference_mode_, what);
    output = inputs_.capture(output);
  }
  functional::sync(output);
  const auto value = values_.find(output);
  if (!value) {
    throw Refusal(fmt::format("{}: it was made in a way that tracing does not see.", what));
  }
  return {.defined = true,
          .type = type_of(output),
          .requires_grad = output.requires_grad(),
          .is_leaf = output.is_leaf(),
          .is_view = output.is_view(),
          .storage = inputs_.storage_number(output.storage()),
          .value = value,
          .version = static_cast<uint32_t>(output._version()),
          .retains_grad = output.retains_grad()};
}

/// What a tensor of the trace retains is not the caller's.
void Recorder::refuse_retained_gradients(std::vector<at::Tensor> seen) {
  const std::vector<at::Tensor> inputs = inputs_.stand_ins();
  seen.insert(seen.end(), inputs.begin(), inputs.end());
  for (const at::Tensor& tensor : seen) {
    const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
    if (!meta || !meta->retains_grad_ || !meta->grad_.defined()) continue;
    throw Refusal(
        fmt::format("the function takes gradients while a tensor `{}` that its caller sees retains "
                    "its own. Expected `retain_grad()` after that.",
                    to_text(type_of(tensor))));
  }
}

Recording Recorder::finish(const std::vector<at::Tensor>& outputs) {
  for (const at::Tensor& output : outputs) {
    if (output.defined() && functional::isFunctionalTensor(output)) values_.adopt(output);
  }
  check_outside_changes();
  refuse_retained_gradients(outputs);
  if (in_inference_mode_ && !recording_.nodes.empty()) {
    throw Refusal(
        "a custom `autograd::Function` is called with grad mode, which the function switches on in "
        "inference mode. Expected a function that leaves grad mode as it is there.");
  }
  {
    const TracingScope scope(TracingScope::Level::Recording);
    custom_nodes_.record_backwards();
    hooks_.record(outputs);
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    recording_.outputs.push_back({observe(outputs[i], fmt::format("output {}", i))});
  for (const ValueId value : hooks_.tensors()) {
    const at::Tensor tensor = values_.tensors()[value.index];
    if (inputs_.first_history(tensor)) continue;
    recording_.hooked.try_emplace(value, observe(tensor, "a tensor that a hook is on or reads"));
  }
  recording_.inputs = inputs_.finish();
  return std::move(recording_);
}

bool is_tracing() { return Tracer::current() != nullptr; }

void handle_front_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                           torch::jit::Stack* stack) {
  // A transform inside the function comes first: the operators that it makes of this one are seen.
  if (is_transforming()) {
    const OutsideTracingScope outside;
    return op.callBoxed(stack);
  }
  unwrap_ended(op, keys, *stack);
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
  const OutsideInferenceMode outside;
  const WithoutNanChecks without_nan_checks;  // of gradients that the function takes
  for (uint32_t i = 0; i < request.arguments.size(); ++i) {
    if (request.arguments[i].defined()) {
      refuse_unsupported_tensor(request.arguments[i], outside.was_inside(),
                                fmt::format("argument {}", i));
    }
  }
  std::vector<at::Tensor> known = distinct_tensors(request.arguments);
  const size_t argument_count = known.size();
  known.insert(known.end(), request.captured.begin(), request.captured.end());
  Tracer tracer(Tracer::Keep::ShapesOnly);
  Tracer::Scope tracing(tracer);
  const GeneratorWatch generator;
  Recorder recorder(request, outside.was_inside(), tracer, generator);
  CurrentRecorder current(recorder);
  ModeGuard modes;
  recorder.inputs().place(gather_inputs(known), request.arrangement, argument_count);
  std::vector<at::Tensor> stand_ins;
  for (const at::Tensor& argument : request.arguments)
    stand_ins.push_back(recorder.inputs().stand_in_of(argument));
  std::vector<at::Tensor> outputs;
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
