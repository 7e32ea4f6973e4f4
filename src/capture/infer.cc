// Three ways to know a result's shape, tried in order: a shape rule, libtorch's Meta kernel (unless
// the CPU casts an argument to another layout first), and the CPU kernel on zeros. The last costs
// memory and time, but it is always right for operators whose shapes do not depend on data, and it
// raises exactly the error that eager would raise.
#include "capture/infer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <exception>
#include <unordered_map>

#include "capture/meta_kernel.h"
#include "capture/outside_state.h"
#include "capture/trace_tensor.h"
#include "graph/call.h"
#include "graph/graph.h"
#include "graph/overlap.h"
#include "graph/refusal.h"
#include "ops/cast_layout.h"
#include "ops/schema.h"
#include "ops/shape_rules.h"

namespace foregrad {

namespace {

at::Tensor zeros_of(const at::Tensor& meta) {
  if (!meta.defined() || !meta.is_meta()) return meta;
  // A kernel may ask how the tensor is aligned, not more of its offset.
  constexpr int64_t kAlignment = 16;
  const int64_t offset = meta.storage_offset() % kAlignment;
  TensorType type = type_of(meta);
  type.storage_offset = offset;
  const int64_t item = static_cast<int64_t>(meta.element_size());
  at::Tensor zeros = at::zeros({extent_of(type).end / item}, meta.options().device(c10::kCPU))
                         .as_strided(type.sizes, type.strides, offset);
  zeros._set_conj(type.is_conj);
  zeros._set_neg(type.is_neg);
  return zeros;
}

at::Tensor meta_of(const at::Tensor& real) {
  return real.defined() && !real.is_meta() ? make_meta(type_of(real)) : real;
}

/// What inference asks of an operator each time it is called.
struct InferenceFacts {
  ShapeRule rule;
  MetaKernel meta_kernel;
  bool has_effect = false;  // then only a kernel for meta tensors may run
  bool is_data_dependent = false;
  bool may_share_memory = false;  // of a view there is nothing to cast
  bool may_have_dynamic_shape =
      false;  // for some arguments only: `index` with masks, not with integers
};

InferenceFacts find_facts(const c10::OperatorHandle& op) {
  return {.rule = find_shape_rule(op),
          .meta_kernel = MetaKernel(op),
          .has_effect = has_declared_effect(op),
          .is_data_dependent = op.hasTag(at::Tag::data_dependent_output),
          .may_share_memory = !memory_aliases(op).empty(),
          .may_have_dynamic_shape = op.hasTag(at::Tag::dynamic_output_shape)};
}

const InferenceFacts& facts_of(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<c10::OperatorHandle, InferenceFacts> facts;
  auto found = facts.find(op);
  if (found == facts.end()) found = facts.emplace(op, find_facts(op)).first;
  return found->second;
}

torch::jit::Stack results_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  return {stack.end() - static_cast<ptrdiff_t>(op.schema().returns().size()), stack.end()};
}

[[noreturn]] void refuse_data_dependent(const c10::OperatorHandle& op) {
  throw Refusal(fmt::format(
      "`{}`: what it returns depends on the data of its arguments, which a trace does not have. "
      "Expected operators whose result has a type known from the types of their arguments. "
      "Take the value outside the compiled function, or keep it in a tensor (`at::where` instead "
      "of `if`).",
      operator_text(op)));
}

}  // namespace

void run_on_zeros(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const size_t begin = stack.size() - op.schema().arguments().size();
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  for (size_t i = begin; i < stack.size(); ++i) {
    change_tensors(stack[i], zeros_of);
    if (stack[i].isDevice()) stack[i] = c10::Device(c10::kCPU);
    if (stack[i].isGenerator()) generator = stack[i].toGenerator();
  }
  std::optional<GeneratorStateGuard> guard;
  if (is_random(op)) guard.emplace(generator);
  op.callBoxed(&stack);
  const size_t results = stack.size() - op.schema().returns().size();
  for (size_t i = results; i < stack.size(); ++i) change_tensors(stack[i], meta_of);
}

ShapeSource infer_results(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const InferenceFacts& facts = facts_of(op);
  if (facts.is_data_dependent) refuse_data_dependent(op);
  const size_t begin = stack.size() - op.schema().arguments().size();
  if (facts.rule) {
    if (auto results = facts.rule(c10::ArrayRef<c10::IValue>(stack).slice(begin))) {
      stack.resize(begin);
      for (auto& result : *results) stack.emplace_back(std::move(result));
      return ShapeSource::Rule;
    }
  } else if (facts.meta_kernel.exists() &&
             (!facts.has_effect || op.hasKernelForDispatchKey(c10::DispatchKey::Meta))) {
    const std::vector<c10::IValue> arguments(stack.begin() + static_cast<ptrdiff_t>(begin),
                                             stack.end());
    try {
      facts.meta_kernel.call(op, stack);
      if (facts.may_share_memory || !cast_may_change_layout(arguments, results_of(op, stack)))
        return ShapeSource::MetaKernel;
    } catch (const std::exception&) {
      // None, or one that is stricter than the real one, which has the last word.
    }
    stack.resize(begin);
    stack.insert(stack.end(), arguments.begin(), arguments.end());
  }
  if (facts.may_have_dynamic_shape) refuse_data_dependent(op);
  if (facts.has_effect) {
    throw Refusal(
        fmt::format("`{}`: it was declared to have an effect, so its kernel must not run while the "
                    "function is traced. Expected a Meta kernel, which gives its results' types.",
                    operator_text(op)));
  }
  run_on_zeros(op, stack);
  return ShapeSource::RealKernel;
}

}  // namespace foregrad
