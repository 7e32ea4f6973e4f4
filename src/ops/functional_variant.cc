#include "ops/functional_variant.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <c10/core/DispatchKey.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "graph/call.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

constexpr const char* kNamespace = "foregrad_functional::";

/// Reads which results are written arguments; nothing if a result shares memory in another way.
std::optional<std::vector<int64_t>> results_of(const c10::FunctionSchema& schema) {
  std::vector<int64_t> result_is;
  for (const c10::Argument& result : schema.returns()) {
    result_is.push_back(-1);
    if (!result.alias_info()) continue;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const auto* argument = schema.arguments()[i].alias_info();
      if (argument && argument->isWrite() &&
          argument->beforeSets() == result.alias_info()->beforeSets())
        result_is.back() = static_cast<int64_t>(i);
    }
    if (result_is.back() < 0) return std::nullopt;
  }
  return result_is;
}

struct RunOnCopies final : c10::OperatorKernel {
  RunOnCopies(c10::OperatorHandle op, std::vector<size_t> written, std::vector<int64_t> result_is)
      : op_(std::move(op)), written_(std::move(written)), result_is_(std::move(result_is)) {}

  void operator()(const c10::OperatorHandle& /*variant*/, c10::DispatchKeySet /*keys*/,
                  torch::jit::Stack* stack) {
    const auto count = static_cast<ptrdiff_t>(op_.schema().arguments().size());
    torch::jit::Stack arguments(stack->end() - count, stack->end());
    stack->resize(stack->size() - count);
    torch::jit::Stack copies;
    for (const size_t i : written_) {
      change_tensors(arguments[i], [](const at::Tensor& tensor) {
        return tensor.defined() ? tensor.clone() : tensor;
      });
      copies.push_back(arguments[i]);
    }
    op_.callBoxed(&arguments);
    for (size_t i = 0; i < result_is_.size(); ++i) {
      if (result_is_[i] < 0) stack->push_back(std::move(arguments[i]));
    }
    for (c10::IValue& copy : copies) stack->push_back(std::move(copy));
  }

 private:
  c10::OperatorHandle op_;
  std::vector<size_t> written_;
  std::vector<int64_t> result_is_;
};

c10::Argument without_alias(const c10::Argument& argument) {
  return {argument.name(), argument.type(),          argument.real_type(),
          argument.N(),    argument.default_value(), argument.kwarg_only()};
}

class FunctionalVariants {
 public:
  const FunctionalVariant& find(const c10::OperatorHandle& op) {
    const std::lock_guard lock(mutex_);
    const auto found = variants_.find(op);
    return found == variants_.end() ? define(op) : *found->second;
  }

 private:
  const FunctionalVariant& define(const c10::OperatorHandle& op) {
    const c10::FunctionSchema& schema = op.schema();
    const auto result_is = results_of(schema);
    TORCH_CHECK(result_is, "`", schema.name(), "` gives views of its arguments");
    std::string name = schema.name();
    name.replace(name.find("::"), 2, "_");
    const c10::OperatorName variant{kNamespace + name, schema.overload_name()};
    std::vector<size_t> written;
    std::vector<c10::Argument> arguments, results;
    for (size_t i = 0; i < schema.returns().size(); ++i) {
      if ((*result_is)[i] < 0) results.emplace_back("", schema.returns()[i].real_type());
    }
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      arguments.push_back(without_alias(schema.arguments()[i]));
      if (!is_written(op, i)) continue;
      written.push_back(i);
      results.emplace_back("", schema.arguments()[i].real_type());
    }
    auto& dispatcher = c10::Dispatcher::singleton();
    registrations_.push_back(
        dispatcher.registerDef(c10::FunctionSchema(variant.name, variant.overload_name,
                                                   std::move(arguments), std::move(results)),
                               "defined by Foregrad", op.getTags().vec()));
    const auto implement = [&](c10::DispatchKey key, c10::KernelFunction kernel) {
      registrations_.push_back(dispatcher.registerImpl(
          variant, key, std::move(kernel), std::nullopt, nullptr, "defined by Foregrad"));
    };
    const auto run_on_copies = [&] {
      return c10::KernelFunction::makeFromBoxedFunctor(
          std::make_unique<RunOnCopies>(op, written, *result_is));
    };
    implement(c10::DispatchKey::CompositeExplicitAutograd, run_on_copies());
    // Without it the operator must run on data to tell the types of its results.
    if (op.hasKernelForDispatchKey(c10::DispatchKey::Meta))
      implement(c10::DispatchKey::Meta, run_on_copies());
    implement(c10::DispatchKey::Conjugate, c10::KernelFunction::makeFallthrough());
    implement(c10::DispatchKey::Negative, c10::KernelFunction::makeFallthrough());
    auto made = std::make_unique<FunctionalVariant>(FunctionalVariant{
        .op = dispatcher.findSchemaOrThrow(variant.name.c_str(), variant.overload_name.c_str()),
        .written = written,
        .result_is = *result_is});
    return *variants_.emplace(op, std::move(made)).first->second;
  }

  std::mutex mutex_;
  std::vector<c10::RegistrationHandleRAII> registrations_;
  std::unordered_map<c10::OperatorHandle, std::unique_ptr<FunctionalVariant>> variants_;
};

}  // namespace

bool has_functional_variant(const c10::OperatorHandle& op) {
  return is_mutating(op) && results_of(op.schema()).has_value();
}

const FunctionalVariant& functional_variant(const c10::OperatorHandle& op) {
  // Never destroyed: the dispatcher outlives this library's statics.
  static auto* const all = new FunctionalVariants;
  return all->find(op);
}

}  // namespace foregrad
