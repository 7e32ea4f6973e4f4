#include "capture/operator_checks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <optional>
#include <unordered_map>

#include "capture/in_place_writes.h"
#include "capture/infer.h"
#include "capture/keys.h"
#include "capture/outside_state.h"
#include "capture/trace_tensor.h"
#include "graph/call.h"
#include "graph/graph.h"
#include "graph/overlap.h"
#include "graph/refusal.h"
#include "ops/memory_variant.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

namespace functional = at::functionalization::impl;

/// Calls an operator on literals where no trace is on, and returns the version of its result;
/// nothing if it takes tensors.
std::optional<uint32_t> version_outside(const c10::OperatorHandle& op,
                                        const std::vector<Operand>& args) {
  torch::jit::Stack arguments;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  for (const Operand& arg : args) {
    const auto* literal = std::get_if<c10::IValue>(&arg);
    if (!literal) return std::nullopt;
    if (literal->isGenerator()) generator = literal->toGenerator();
    arguments.push_back(*literal);
  }
  const GeneratorStateGuard state(generator);
  OutsideTracingScope outside;
  op.callBoxed(&arguments);
  return static_cast<uint32_t>(arguments.at(0).toTensor()._version());
}

}  // namespace

void check_overlap(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  // Composites are taken apart first.
  if (memory_variant(op) || op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
    return;
  std::vector<at::Tensor> written, others;
  bool is_at_stake = false;
  const auto count = static_cast<ptrdiff_t>(op.schema().arguments().size());
  torch::jit::Stack metas(stack.end() - count, stack.end());
  const auto meta_of = [](const at::Tensor& tensor) {
    functional::sync(tensor);
    const auto* traced = traced_inside(tensor);
    return traced ? traced->meta() : tensor;
  };
  for (size_t i = 0; i < metas.size(); ++i) {
    change_tensors(metas[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !functional::isFunctionalTensor(tensor)) return tensor;
      if (is_written(op, i)) is_at_stake |= lies_in_overlap(tensor);
      at::Tensor meta = meta_of(tensor);
      (is_written(op, i) ? written : others).push_back(meta);
      return meta;
    });
  }
  const auto overlap = [](const at::Tensor& left, const at::Tensor& right) {
    return left.storage().is_alias_of(right.storage()) && left.numel() > 0 && right.numel() > 0 &&
           !(left.storage_offset() == right.storage_offset() && left.sizes() == right.sizes() &&
             left.strides() == right.strides()) &&
           overlaps(type_of(left), type_of(right));
  };
  for (const at::Tensor& tensor : written) {
    for (const at::Tensor& other : others) is_at_stake |= overlap(tensor, other);
  }
  if (!is_at_stake) return;
  try {
    BelowTracingScope below;
    op.callBoxed(&metas);
  } catch (const c10::NotImplementedError&) {  // no Meta kernel
  }
  throw Refusal(
      fmt::format("`{}`: it writes a tensor whose elements share memory with each other or with "
                  "another argument. Expected tensors without overlap. Clone one of them.",
                  operator_text(op)));
}

std::vector<ExpectedOut> infer_outs(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  if (!is_mutating(op)) return {};
  const auto& parameters = op.schema().arguments();
  const size_t begin = stack.size() - parameters.size();
  const auto is_out = [&](size_t i) { return parameters[i].is_out(); };
  bool has_outs = false;
  for (size_t i = 0; i < parameters.size(); ++i) has_outs |= is_out(i);
  if (!has_outs) return {};
  std::vector<ExpectedOut> outs;
  std::vector<at::Tensor> metas;
  torch::jit::Stack arguments(stack.begin() + static_cast<ptrdiff_t>(begin), stack.end());
  for (size_t i = 0; i < parameters.size(); ++i) {
    change_tensors(arguments[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !functional::isFunctionalTensor(tensor)) return tensor;
      at::Tensor meta = make_meta(type_of(tensor));
      if (is_out(i)) {
        outs.push_back({.stand_in = tensor, .type = {}});
        metas.push_back(meta);
      }
      return meta;
    });
  }
  const BelowTracingScope below;
  const auto results = static_cast<ptrdiff_t>(op.schema().returns().size());
  infer_results(op, arguments);
  // The kernel may have run on others than these.
  std::vector<at::Tensor> left;
  for (auto entry = arguments.end() - results; entry != arguments.end(); ++entry)
    for_each_tensor(*entry, [&](const at::Tensor& tensor) { left.push_back(tensor); });
  for (size_t i = 0; i < outs.size(); ++i)
    outs[i].type = type_of(i < left.size() ? left[i] : metas[i]);
  return outs;
}

void check_outs(const c10::OperatorHandle& op, const std::vector<ExpectedOut>& outs) {
  for (const auto& [stand_in, expected] : outs) {
    const TensorType type = type_of(stand_in);
    if (type.dtype == expected.dtype && type.sizes == expected.sizes &&
        type.strides == expected.strides)
      continue;
    throw Refusal(fmt::format(
        "`{}`: it leaves an `out` argument as `{}`, of which functionalization makes `{}`. Give it "
        "one of the right sizes and strides, or take what the operator returns without one.",
        operator_text(op), to_text(expected), to_text(type)));
  }
}

void give_version(const c10::OperatorHandle& op, const std::vector<Operand>& args,
                  const torch::jit::Stack& stack) {
  if (op.schema().returns().size() != 1 || !stack.back().isTensor() || has_declared_effect(op))
    return;
  const at::Tensor& result = stack.back().toTensor();
  if (!result.defined()) return;
  // `torch::ones` calls `at::ones` where writes advance no version.
  const bool is_below = c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::ADInplaceOrView);
  thread_local std::unordered_map<c10::OperatorHandle, uint32_t> versions_by_level[2];
  auto& versions = versions_by_level[is_below];
  auto known = versions.find(op);
  if (known == versions.end()) {
    const auto version = version_outside(op, args);
    if (!version) return;
    known = versions.emplace(op, *version).first;
  }
  for (uint32_t i = 0; i < known->second; ++i) torch::autograd::impl::bump_version(result);
}

}  // namespace foregrad
