// A value of the recording is a tensor object: two handles of one tensor are one value, an in-place
// operator gives the value it wrote. Tensors are matched by identity; one that autograd saved comes
// back as a new object without an operator call, and is matched by the trace tensor inside its
// wrapper.
#include "capture/recorder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/equal.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_map>
#include <utility>

#include "capture/keys.h"
#include "capture/outside_state.h"
#include "capture/stand_in.h"
#include "capture/trace_tensor.h"
#include "capture/tracer.h"
#include "graph/refusal.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

namespace functional = at::functionalization::impl;

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

  at::Tensor add_argument(const at::Tensor& tensor, uint32_t position) {
    if (!tensor.defined()) return tensor;
    refuse_unsupported_tensor(tensor, fmt::format("argument {}", position));
    return lift(tensor, UserInput{InputIndex{next_input()}});
  }

  void handle(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  Recording finish(const std::vector<at::Tensor>& outputs);

 private:
  struct Lift {
    at::Tensor real;
    at::Tensor stand_in;
    torch::autograd::Edge edge;  // where its history begins; empty if it requires no grad
  };

  uint32_t next_input() const { return static_cast<uint32_t>(lifts_.size()); }
  at::Tensor lift(const at::Tensor& real, const InputRole& role);
  at::Tensor lift_captured(const at::Tensor& tensor, const c10::OperatorHandle& op);
  void lift_entry(c10::IValue& entry, const c10::OperatorHandle& op);
  ValueId number(const at::Tensor& tensor);
  ValueId value_of(const at::Tensor& tensor, const c10::OperatorHandle& op);
  Operand take(const c10::IValue& entry, const c10::OperatorHandle& op);
  Operand give(const c10::IValue& entry);
  void check_outside_changes();
  InputObservation observe(const Lift& lift);
  size_t storage_number(const at::Tensor& tensor);

  const RecordRequest& request_;
  Tracer& tracer_;
  Recording recording_;
  std::vector<Lift> lifts_;
  TensorWatch watch_;
  std::vector<at::Tensor> kept_;  // a freed tensor's address would be taken for another value
  std::unordered_map<const c10::TensorImpl*, size_t> lift_of_;  // by the real tensor
  std::unordered_map<const c10::TensorImpl*, ValueId> by_identity_;
  std::unordered_map<uint32_t, ValueId> by_traced_value_;
  std::unordered_map<const c10::StorageImpl*, size_t> storage_numbers_;
};

thread_local Recorder* Recorder::current = nullptr;

at::Tensor Recorder::lift(const at::Tensor& real, const InputRole& role) {
  const auto known = lift_of_.find(real.unsafeGetTensorImpl());
  if (known != lift_of_.end()) return lifts_[known->second].stand_in;
  at::Tensor stand_in =
      make_stand_in(tracer_, type_of(real), role, real.requires_grad(), real.is_leaf());
  Lift lift{.real = real, .stand_in = stand_in, .edge = {}};
  watch_.watch_data(real);
  if (real.requires_grad()) {
    if (real.is_leaf()) {
      // A gradient that the function takes with respect to the real tensor ends at its own
      // accumulator.
      watch_.watch_grad(real);
      lift.edge = {torch::autograd::impl::grad_accumulator(real), 0};
      torch::autograd::impl::set_grad_accumulator(
          stand_in, c10::weak_intrusive_ptr<torch::autograd::Node>(lift.edge.function));
    }
    lift.edge = torch::autograd::impl::gradient_edge(stand_in);
  }
  lift_of_.emplace(real.unsafeGetTensorImpl(), lifts_.size());
  lifts_.push_back(lift);
  recording_.inputs.push_back({.value = number(stand_in),
                               .tensor = std::holds_alternative<Lifted>(role) ? real : at::Tensor(),
                               .role = role,
                               .seen = {}});
  return stand_in;
}

at::Tensor Recorder::lift_captured(const at::Tensor& tensor, const c10::OperatorHandle& op) {
  if (!tensor.defined() || is_wrapper(tensor)) return tensor;
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
  const auto known = lift_of_.find(tensor.unsafeGetTensorImpl());
  if (known != lift_of_.end()) {
    // An argument that the function also reaches by capture is only the same tensor by chance: it
    // is held, for a guard.
    recording_.inputs[known->second].tensor = tensor;
    return lifts_[known->second].stand_in;
  }
  const std::string where = fmt::format("`{}`", operator_text(op));
  refuse_unsupported_tensor(tensor, where);
  if (request_.on_capture) request_.on_capture(tensor, operator_text(op));
  return lift(tensor, Lifted{InputIndex{next_input()}});
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

ValueId Recorder::number(const at::Tensor& tensor) {
  auto [found, is_new] = by_identity_.try_emplace(tensor.unsafeGetTensorImpl());
  if (is_new) {
    found->second = ValueId{recording_.value_count++};
    kept_.push_back(tensor);
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

void Recorder::handle(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const size_t begin = stack.size() - op.schema().arguments().size();
  RecordedOp recorded{.op = op, .args = {}, .results = {}, .modes = current_modes(), .history = 0};
  recorded.args.reserve(stack.size() - begin);
  struct Written {
    at::Tensor tensor;
    TensorType type;
    uint32_t version;
  };
  std::vector<Written> written;
  for (size_t i = begin; i < stack.size(); ++i) {
    lift_entry(stack[i], op);
    recorded.args.push_back(take(stack[i], op));
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (functional::isFunctionalTensor(tensor)) fold_history(recorded.history, tensor);
    });
    if (!is_written(op, i - begin)) continue;
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (tensor.defined())
        written.push_back({tensor, type_of(tensor), static_cast<uint32_t>(tensor._version())});
    });
  }
  const bool writes = is_mutating(op);
  op.callBoxed(&stack);
  for (const auto& [tensor, type, version] : written) {
    number(tensor);  // its traced value is a new one
    // libtorch advances the versions of a list of functional wrappers in no kernel.
    if (tensor._version() == version) torch::autograd::impl::bump_version(tensor);
    if (op.hasTag(at::Tag::inplace_view)) continue;
    // Functionalization gives a written tensor the new value's strides; eager keeps the old ones.
    const TensorType now = type_of(tensor);
    if (now.sizes == type.sizes && now.strides != type.strides) {
      throw Refusal(fmt::format(
          "`{}`: an in-place write into a tensor `{}` with gaps is not supported yet. Expected a "
          "dense tensor.",
          operator_text(op), to_text(type)));
    }
  }
  bool gives_tensors = false;
  for (size_t i = begin; i < stack.size(); ++i) {
    recorded.results.push_back(give(stack[i]));
    gives_tensors |= !std::holds_alternative<c10::IValue>(recorded.results.back());
  }
  if (!gives_tensors && !writes && op.schema().returns().empty()) {
    throw Refusal(
        fmt::format("`{}`: it returns nothing and its schema declares no write, so its effect "
                    "can't be recorded. Call it outside the "
                    "compiled function.",
                    operator_text(op)));
  }
  if (gives_tensors || writes) recording_.ops.push_back(std::move(recorded));
}

size_t Recorder::storage_number(const at::Tensor& tensor) {
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  return storage_numbers_.try_emplace(storage, storage_numbers_.size()).first->second;
}

InputObservation Recorder::observe(const Lift& lift) {
  const at::Tensor& now = lift.stand_in;
  auto* wrapper = functional::unsafeGetFunctionalWrapper(now);
  functional::sync(now);
  const bool requires_grad = now.requires_grad();
  const bool same_history =
      requires_grad == lift.real.requires_grad() &&
      (!requires_grad || torch::autograd::impl::gradient_edge(now) == lift.edge);
  return {.before = type_of(lift.real),
          .after = type_of(now),
          .requires_grad_before = lift.real.requires_grad(),
          .requires_grad_after = requires_grad,
          .is_leaf = lift.real.is_leaf(),
          .is_view = lift.real.is_view(),
          .data_mutated = wrapper->has_data_mutation(),
          .metadata_mutated = wrapper->has_metadata_mutation(),
          .storage_changed = wrapper->was_storage_changed() || wrapper->was_shallow_copy_data(),
          .hidden_from_autograd = same_history,
          .version_advance = static_cast<uint32_t>(now._version()),
          .storage = storage_number(now)};
}

void Recorder::check_outside_changes() {
  watch_.refuse_changes();
  for (const at::Tensor& tensor : kept_) {
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
        output = lift(output, Lifted{InputIndex{next_input()}});
      }
      functional::sync(output);
      auto value = by_identity_.find(output.unsafeGetTensorImpl());
      if (value == by_identity_.end()) {
        throw Refusal(fmt::format("output {}: it was made in a way that tracing does not see.", i));
      }
      seen = {.defined = true,
              .type = type_of(output),
              .requires_grad = output.requires_grad(),
              .storage = storage_number(output),
              .value = value->second,
              .version = static_cast<uint32_t>(output._version())};
    }
    recording_.outputs.push_back({seen});
  }
  for (size_t i = 0; i < lifts_.size(); ++i) recording_.inputs[i].seen = observe(lifts_[i]);
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
  Tracer tracer(Tracer::Keep::ShapesOnly);
  Tracer::Scope tracing(tracer);
  Recorder recorder(request, tracer);
  CurrentRecorder current(recorder);
  ModeGuard modes;
  std::vector<at::Tensor> stand_ins;
  for (uint32_t i = 0; i < request.arguments.size(); ++i) {
    stand_ins.push_back(recorder.add_argument(request.arguments[i], i));
  }
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
