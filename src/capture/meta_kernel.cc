#include "capture/meta_kernel.h"

#include <ATen/core/dispatch/OperatorEntry.h>
#include <c10/core/DispatchKey.h>

#include <algorithm>
#include <list>

namespace foregrad {

namespace {

using c10::DispatchKey;
using Kernels = std::list<c10::impl::AnnotatedKernel>;
using AllKernels = ska::flat_hash_map<DispatchKey, Kernels>;

// For what has no kernel of its own for meta tensors.
constexpr DispatchKey kForAllBackends[] = {DispatchKey::CompositeExplicitAutogradNonFunctional,
                                           DispatchKey::CompositeExplicitAutograd};

/// Returns all kernels of an operator, by key, the newest first.
const AllKernels& all_kernels(const c10::OperatorHandle& op);

/// The dispatcher keeps the kernels that newer ones hide, for the case that these go away, but
/// shows none of them. Names of private members are allowed where a template is instantiated.
template <auto kDefinition, auto kKernels>
struct Registered {
  friend const AllKernels& all_kernels(const c10::OperatorHandle& op) {
    return (op.*kDefinition)->op.*kKernels;
  }
};
template struct Registered<&c10::OperatorHandle::operatorDef_, &c10::impl::OperatorEntry::kernels_>;

const Kernels* kernels_of(const c10::OperatorHandle& op, DispatchKey key) {
  const auto found = all_kernels(op).find(key);
  return found == all_kernels(op).end() ? nullptr : &found->second;
}

/// Whether it was written in C++: for arguments of certain types.
bool is_typed(const c10::KernelFunction& kernel) {
  return kernel.isValidUnboxed() || kernel.isValidSymUnboxed();
}

/// Returns the newest such kernel.
std::optional<c10::KernelFunction> typed_kernel(const c10::OperatorHandle& op, DispatchKey key) {
  const Kernels* kernels = kernels_of(op, key);
  if (!kernels) return std::nullopt;
  const auto typed = std::ranges::find_if(
      *kernels, [](const c10::impl::AnnotatedKernel& each) { return is_typed(each.kernel); });
  return typed == kernels->end() ? std::nullopt : std::optional(typed->kernel);
}

bool is_libtorchs(const c10::OperatorHandle& op) {
  return op.operator_name().getNamespace() == "aten";
}

}  // namespace

MetaKernel::MetaKernel(const c10::OperatorHandle& op) {
  const Kernels* kernels = kernels_of(op, DispatchKey::Meta);
  const bool is_python = kernels && !is_typed(kernels->front().kernel) && is_libtorchs(op);
  if (!is_python) {
    exists_ = kernels || std::ranges::any_of(kForAllBackends, [&](DispatchKey key) {
                return op.hasKernelForDispatchKey(key);
              });
    return;
  }
  hidden_ = typed_kernel(op, DispatchKey::Meta);
  for (const DispatchKey key : kForAllBackends) {
    if (!hidden_) hidden_ = typed_kernel(op, key);
  }
  exists_ = hidden_.has_value();
}

void MetaKernel::call(const c10::OperatorHandle& op, torch::jit::Stack& stack) const {
  if (hidden_) {
    hidden_->callBoxed(op, c10::DispatchKeySet(DispatchKey::Meta), &stack);
  } else {
    op.callBoxed(&stack);
  }
}

}  // namespace foregrad
