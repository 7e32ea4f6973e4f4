#include "runtime/epilogue.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>

#include "graph/call.h"

namespace foregrad {

namespace {

at::Tensor replay(const ViewStep& step, const at::Tensor& source) {
  c10::AutoGradMode grad_mode(step.op.modes.grad_mode);
  torch::jit::Stack stack;
  push_arguments(stack, step.op.op, step.op.args, [&](ValueId) { return source; });
  step.op.op.callBoxed(&stack);
  if (step.element) return stack[step.result].toTensorVector()[*step.element];
  return stack[step.result].toTensor();
}

at::Tensor view_of(const at::Tensor& input, const ViewOfInput& origin, const OutputInfo& info,
                   const InputInfo& input_info) {
  if (origin.chain.empty()) {
    // Offsets are relative to the input's own, which may differ from the recorded one.
    const int64_t offset =
        input.storage_offset() + info.type.storage_offset - input_info.type.storage_offset;
    return input.as_strided(info.type.sizes, info.type.strides, offset);
  }
  at::Tensor view = input;
  for (const ViewStep& step : origin.chain) view = replay(step, view);
  return view;
}

}  // namespace

void write_back(const at::Tensor& input, const at::Tensor& updated, const InputInfo& info,
                const c10::intrusive_ptr<torch::autograd::Node>& node) {
  {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    input.copy_(updated);
  }
  for (uint32_t i = 0; i < info.version_advance; ++i) torch::autograd::impl::bump_version(input);
  if (!info.is_tracked_write()) return;
  const uint32_t number = node->add_input_metadata(input);
  torch::autograd::impl::rebase_history(input, {node, number});
}

void regenerate_aliases(const ViewAndMutationMeta& meta, std::span<const at::Tensor> inputs,
                        std::vector<at::Tensor>& outputs) {
  for (uint32_t i = 0; i < meta.outputs.size(); ++i) {
    const OutputInfo& info = meta.outputs[i];
    if (const auto* is_input = std::get_if<IsInput>(&info.origin)) {
      outputs[i] = inputs[is_input->input.index];
    } else if (const auto* same = std::get_if<SameAsOutput>(&info.origin)) {
      outputs[i] = outputs[same->output.index];
    } else if (const auto* view = std::get_if<ViewOfInput>(&info.origin)) {
      const uint32_t input = view->input.index;
      outputs[i] = view_of(inputs[input], *view, info, meta.inputs[input]);
      if (meta.needs_detach(OutputIndex{i}) && outputs[i].requires_grad())
        outputs[i] = outputs[i].detach();
    }
  }
}

}  // namespace foregrad
