#include "capture/library_writes.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <utility>
#include <vector>

#include "capture/trace_tensor.h"
#include "capture/written_layout.h"
#include "graph/call.h"
#include "ops/functional_variant.h"

namespace foregrad {

namespace {

namespace functional = at::functionalization::impl;

at::Tensor outside(const at::Tensor& tensor) {
  return tensor.defined() ? functional::to_functional_tensor(tensor) : tensor;
}

std::vector<at::Tensor> tensors_in(const c10::IValue& entry) {
  std::vector<at::Tensor> tensors;
  for_each_tensor(entry, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

/// Gives wrappers the values that were written.
void commit(const c10::IValue& argument, const c10::IValue& values) {
  const auto wrappers = tensors_in(argument);
  const auto written = tensors_in(values);
  for (size_t i = 0; i < wrappers.size(); ++i) {
    if (!wrappers[i].defined() || !functional::isFunctionalTensor(wrappers[i])) continue;
    functional::replace_(wrappers[i], written.at(i));
    functional::commit_update(wrappers[i]);
    functional::sync(wrappers[i]);
  }
}

}  // namespace

bool needs_functional_variant(const c10::OperatorHandle& op) {
  return !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::Functionalize) &&
         !op.operator_name().name.starts_with("aten::") &&
         !op.operator_name().name.starts_with("prim") && has_functional_variant(op);
}

void handle_library_write(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/,
                          torch::jit::Stack* stack) {
  const auto count = static_cast<ptrdiff_t>(op.schema().arguments().size());
  const torch::jit::Stack arguments(stack->end() - count, stack->end());
  const FunctionalVariant& variant = functional_variant(op);
  const WrittenLayouts layouts(op, *stack);
  torch::jit::Stack results = arguments;
  for (c10::IValue& entry : results) change_tensors(entry, inside_of);
  {
    const at::AutoDispatchSkipFunctionalize below;
    variant.op.callBoxed(&results);
  }
  const size_t first_written = results.size() - variant.written.size();
  for (size_t i = 0; i < variant.written.size(); ++i)
    commit(arguments[variant.written[i]], results[first_written + i]);
  layouts.keep();
  stack->resize(stack->size() - count);
  size_t next = 0;
  for (const int64_t written : variant.result_is) {
    if (written >= 0) {
      stack->push_back(arguments[static_cast<size_t>(written)]);
    } else {
      change_tensors(results[next], outside);
      stack->push_back(std::move(results[next++]));
    }
  }
}

}  // namespace foregrad
