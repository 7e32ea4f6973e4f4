#include "capture/operator_checks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <optional>
#include <unordered_map>

#include "capture/in_place_writes.h"
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

void give_version(const c10::OperatorHandle& op, const std::vector<Operand>& args,
                  const torch::jit::Stack& stack) {
  if (op.schema().returns().size() != 1 || !stack.back().isTensor()) return;
  const at::Tensor& result = stack.back().toTensor();
  if (!result.defined()) return;
  thread_local std::unordered_map<c10::OperatorHandle, uint32_t> versions;
  auto known = versions.find(op);
  if (known == versions.end()) {
    const auto version = version_outside(op, args);
    if (!version) return;
    known = versions.emplace(op, *version).first;
  }
  for (uint32_t i = 0; i < known->second; ++i) torch::autograd::impl::bump_version(result);
}

}  // namespace foregrad
