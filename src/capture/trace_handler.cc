// What arrives here is functional: autograd and functionalization are above. Three kinds of calls
// are not part of the program and leave no node: helper calls of functionalization on plain meta
// tensors, arithmetic of libtorch's own on constants that it made of C++ numbers, and factories
// that ask for the meta device.
//
// No tensor that is neither traced nor a zero-dimensional constant may enter the graph: anything
// else is refused here.
#include "capture/trace_handler.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <unordered_map>

#include "capture/infer.h"
#include "capture/keys.h"
#include "capture/trace_tensor.h"
#include "capture/tracer.h"
#include "graph/refusal.h"
#include "ops/op_table.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

/// One operator call on its way through the trace.
class TracedCall {
 public:
  TracedCall(Tracer& tracer, const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : tracer_(tracer),
        op_(op),
        stack_(stack),
        begin_(stack.size() - op.schema().arguments().size()) {}

  void run() {
    find_what_it_takes();
    const bool is_helper = takes_tensors_ ? !takes_traced_ : asks_for_meta_device_;
    if (is_helper) {
      run_helper();
      return;
    }
    if (is_mutating(op_)) refuse_write();
    std::vector<Operand> args;
    args.reserve(stack_.size() - begin_);
    for (size_t i = begin_; i < stack_.size(); ++i)
      args.push_back(take_argument(stack_[i], i - begin_));
    if (infer_results(op_, stack_) == ShapeSource::RealKernel) tracer_.count_last_resort(op_);
    std::vector<Operand> results;
    results.reserve(op_.schema().returns().size());
    bool gives_tensors = false;
    for (size_t i = begin_; i < stack_.size(); ++i) {
      results.push_back(give_result(stack_[i]));
      gives_tensors |= !std::holds_alternative<c10::IValue>(results.back());
    }
    // A question about sizes or flags has its answer now and needs no node; a check of data has
    // none.
    if (tracer_.keeps_nodes() && (gives_tensors || op_.schema().returns().empty())) {
      tracer_.append({.op = op_, .args = std::move(args), .results = std::move(results)});
    }
  }

 private:
  /// Functionalization tries writes on meta tensors, for errors of shapes. Where an operator has no
  /// Meta kernel there is nothing to learn, and what was written is what it gives.
  void run_helper() {
    if (!is_mutating(op_)) {
      op_.callBoxed(&stack_);
      return;
    }
    const torch::jit::Stack arguments(stack_.begin() + static_cast<ptrdiff_t>(begin_),
                                      stack_.end());
    try {
      op_.callBoxed(&stack_);
    } catch (const c10::NotImplementedError&) {
      stack_.resize(begin_);
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (is_written(op_, i) && stack_.size() < begin_ + op_.schema().returns().size())
          stack_.push_back(arguments[i]);
      }
    }
  }

  void find_what_it_takes() {
    auto look_at = [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      takes_tensors_ = true;
      takes_traced_ |= as_trace_tensor(tensor) != nullptr;
    };
    for (size_t i = begin_; i < stack_.size(); ++i) {
      const c10::IValue& entry = stack_[i];
      if (entry.isTensor()) {
        look_at(entry.toTensor());
      } else if (entry.isTensorList()) {
        for (const at::Tensor& tensor : entry.toTensorList()) look_at(tensor);
      } else if (entry.isOptionalTensorList()) {
        for (const std::optional<at::Tensor>& tensor : entry.toOptionalTensorList()) {
          if (tensor) look_at(*tensor);
        }
      } else if (entry.isDevice()) {
        asks_for_meta_device_ = entry.toDevice().is_meta();
      }
    }
  }

  /// Returns the operand of an argument, and leaves on the stack what inference takes for it.
  Operand take_argument(c10::IValue& entry, size_t index) {
    if (entry.isTensor()) {
      at::Tensor tensor = entry.toTensor();
      if (!tensor.defined()) return c10::IValue();
      const TraceTensorImpl* traced = as_trace_tensor(tensor);
      if (!traced) return constant(tensor);
      entry = traced->meta();
      return traced->value();
    }
    if (entry.isTensorList()) return take_list(entry, entry.toTensorList());
    if (entry.isOptionalTensorList()) return take_list(entry, entry.toOptionalTensorList());
    const auto& parameter = op_.schema().arguments()[index];
    if (entry.isDevice() || (entry.isNone() && parameter.name() == "device")) {
      return take_device(entry);
    }
    return entry;
  }

  template <class List>
  Operand take_list(c10::IValue& entry, const List& list) {
    ValueList values;
    List metas;
    for (const std::optional<at::Tensor>& tensor : list) {
      if (!tensor || !tensor->defined()) {
        values.emplace_back();
        metas.push_back({});
        continue;
      }
      const TraceTensorImpl* traced = as_trace_tensor(*tensor);
      if (!traced) refuse_stranger(*tensor);
      values.emplace_back(traced->value());
      metas.push_back(traced->meta());
    }
    entry = std::move(metas);
    return values;
  }

  /// An absent device means the CPU here, as it does in eager; inference runs on the meta device.
  Operand take_device(c10::IValue& entry) {
    c10::IValue literal = entry;
    if (entry.isDevice() && !entry.toDevice().is_cpu()) {
      throw Refusal(
          fmt::format("`{}`: device `{}` is not supported. Expected `cpu`. Move tensors outside "
                      "the compiled function.",
                      operator_text(op_), entry.toDevice().str()));
    }
    entry = c10::Device(c10::kMeta);
    return literal;
  }

  Operand constant(const at::Tensor& tensor) {
    if (!tensor.device().is_cpu() || tensor.dim() != 0) refuse_stranger(tensor);
    return c10::IValue(tensor);
  }

  /// A graph is functional: passes may merge and move its nodes.
  [[noreturn]] void refuse_write() const {
    throw Refusal(
        fmt::format("`{}`: it writes its arguments below functionalization, which can't "
                    "be traced. Expected the functional operator of it.",
                    operator_text(op_)));
  }

  [[noreturn]] void refuse_stranger(const at::Tensor& tensor) {
    throw Refusal(
        fmt::format("`{}`: a tensor `{}` that is neither traced nor declared reached the trace. "
                    "Expected tensors that come from the "
                    "function's arguments or captured state. An operator's own kernel must not "
                    "keep tensors; pass them as arguments.",
                    operator_text(op_), foregrad::to_text(type_of(tensor))));
  }

  Operand give_result(c10::IValue& entry) {
    if (entry.isTensor()) {
      if (!entry.toTensor().defined()) return c10::IValue();
      return give_tensor(entry);
    }
    if (entry.isTensorList()) {
      ValueList values;
      c10::List<at::Tensor> traced;
      for (const at::Tensor& meta : entry.toTensorVector()) {
        at::Tensor tensor = meta.defined() ? tracer_.define(meta) : at::Tensor();
        values.push_back(meta.defined() ? std::optional(as_trace_tensor(tensor)->value())
                                        : std::nullopt);
        traced.push_back(std::move(tensor));
      }
      entry = std::move(traced);
      return values;
    }
    return entry;
  }

  Operand give_tensor(c10::IValue& entry) {
    at::Tensor meta = std::move(entry).toTensor();
    if (!meta.is_meta()) meta = make_meta(type_of(meta));
    at::Tensor traced = tracer_.define(std::move(meta));
    const ValueId value = as_trace_tensor(traced)->value();
    entry = std::move(traced);
    return value;
  }

  Tracer& tracer_;
  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  const size_t begin_;
  bool takes_tensors_ = false;
  bool takes_traced_ = false;
  bool asks_for_meta_device_ = false;
};

/// An operator whose result can't be traced is traced as another.
const c10::OperatorHandle& stand_in_for(const c10::OperatorHandle& op) {
  static const auto others = [] {
    std::unordered_map<c10::OperatorHandle, c10::OperatorHandle> found;
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const OpRow& row : op_table()) {
      if (!row.traced_as) continue;
      found.emplace(dispatcher.findSchemaOrThrow(row.name, row.overload),
                    dispatcher.findSchemaOrThrow(row.traced_as, row.overload));
    }
    return found;
  }();
  const auto found = others.find(op);
  return found == others.end() ? op : found->second;
}

}  // namespace

void handle_traced_operator(const c10::OperatorHandle& called, c10::DispatchKeySet /*keys*/,
                            torch::jit::Stack* stack) {
  const c10::OperatorHandle& op = stand_in_for(called);
  Tracer* tracer = Tracer::current();
  if (tracer && tracer->decompose(op, *stack)) return;
  BelowTracingScope below;
  TORCH_CHECK(tracer, "`", operator_text(op),
              "`: a tensor that only stood for a value while a function was traced is used after "
              "the trace. Expected "
              "tensors with data. Don't keep tensors from inside a compiled function in variables "
              "outside of it; return them.");
  TracedCall(*tracer, op, *stack).run();
}

}  // namespace foregrad
