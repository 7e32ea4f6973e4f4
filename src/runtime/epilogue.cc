#include "runtime/epilogue.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>

#include <algorithm>

#include "graph/alias.h"
#include "graph/call.h"

namespace foregrad {

namespace {

at::Tensor memory_of(const at::Tensor& anchor, const MemorySpan& span) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  TensorType type = span.type;
  type.storage_offset = span.is_whole_storage ? 0 : anchor.storage_offset() + span.start;
  return tensor_over(anchor.storage(), type);
}

/// Calls the operators of effects on the caller's tensors.
class Effects {
 public:
  Effects(std::vector<at::Tensor>& slots, const HistorySource& history)
      : slots_(slots), history_(history) {}

  void operator()(const CallAgain& call) {
    c10::AutoGradMode grad_mode(call.op.modes.grad_mode);
    torch::jit::Stack stack;
    push_arguments(stack, call.op.op, call.op.args,
                   [&](ValueId slot) { return slots_.at(slot.index); });
    call.op.op.callBoxed(&stack);
    take_results(stack, call.op.results, [&](ValueId slot, at::Tensor&& tensor) {
      slots_.at(slot.index) = std::move(tensor);
    });
  }
  void operator()(const TakeStrided& take) {
    c10::AutoGradMode grad_mode(take.grad_mode);
    const at::Tensor& base = slots_[take.base.index];
    slots_[take.view.index] = base.as_strided(take.type.sizes, take.type.strides,
                                              base.storage_offset() + take.type.storage_offset);
  }
  void operator()(const AdvanceVersion& advance) {
    for (uint32_t i = 0; i < advance.by; ++i)
      torch::autograd::impl::bump_version(slots_[advance.slot.index]);
  }
  void operator()(const HoldHistory& hold) {
    torch::autograd::create_gradient_edge(
        slots_[hold.slot.index],
        c10::make_intrusive<torch::autograd::Error>("a history that was replaced is followed"));
  }
  void operator()(const RefreshHistory& refresh) { slots_[refresh.slot.index].grad_fn(); }
  void operator()(const JoinHistory& join) {
    const at::Tensor& tensor = slots_[join.slot.index];
    torch::autograd::Edge history = history_(join.as, tensor);
    if (join.creation_meta == 0) {
      torch::autograd::impl::rebase_history(tensor, std::move(history));
    } else {
      torch::autograd::impl::set_gradient_edge(tensor, std::move(history));
      torch::autograd::impl::get_view_autograd_meta(tensor)->set_creation_meta(
          static_cast<torch::autograd::CreationMeta>(join.creation_meta));
    }
  }

 private:
  std::vector<at::Tensor>& slots_;
  const HistorySource& history_;
};

}  // namespace

void append_found_inputs(const ViewAndMutationMeta& meta, std::vector<at::Tensor>& inputs) {
  for (size_t i = inputs.size(); i < meta.inputs.size(); ++i) {
    const InputInfo& info = meta.inputs[i];
    const at::Tensor& leads_to = inputs[info.found_by.index];
    inputs.push_back(info.span.type.sizes.empty() ? base_of(leads_to)
                                                  : memory_of(leads_to, info.span));
  }
}

StorageResizes::StorageResizes(const ViewAndMutationMeta& meta,
                               std::span<const at::Tensor> inputs) {
  for (size_t i = 0; i < meta.inputs.size(); ++i) {
    const auto& bytes = meta.inputs[i].resized_to;
    if (bytes) resizes_.push_back({inputs[i].storage(), static_cast<size_t>(*bytes)});
  }
}

void StorageResizes::grow() const {
  for (const Resize& resize : resizes_) {
    if (resize.bytes > resize.storage.nbytes())
      at::native::resize_bytes_nocuda(resize.storage, static_cast<int64_t>(resize.bytes));
  }
}

void StorageResizes::shrink() const {
  for (const Resize& resize : resizes_) {
    if (resize.bytes < resize.storage.nbytes())
      at::native::resize_bytes_nocuda(resize.storage, static_cast<int64_t>(resize.bytes));
  }
}

void write_back(const ViewAndMutationMeta& meta, InputIndex index,
                std::span<const at::Tensor> inputs, const at::Tensor& updated) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  const InputInfo& info = meta.inputs[index.index];
  const at::Tensor& input = inputs[index.index];
  // Freed again before the call ends: there is no place for the elements.
  if (input.numel() > 0 && input.storage().nbytes() == 0) return;
  if (info.written_parts.empty()) {
    input.copy_(updated);
    return;
  }
  for (const InputIndex part : info.written_parts) {
    const at::Tensor& part_input = inputs[part.index];
    const TensorType type = type_of(part_input);
    part_input.copy_(alias_of(updated, type, offset_between(type_of(input), type)));
  }
}

void bring_about(const ViewAndMutationMeta& meta, std::vector<at::Tensor>& slots,
                 const HistorySource& history) {
  slots.resize(std::max<size_t>(meta.slot_count, meta.inputs.size()));
  Effects effects(slots, history);
  for (const Effect& effect : meta.effects) std::visit(effects, effect);
}

void take_aliases(const ViewAndMutationMeta& meta, std::span<const at::Tensor> slots,
                  std::vector<at::Tensor>& outputs) {
  for (uint32_t i = 0; i < meta.outputs.size(); ++i) {
    const OutputOrigin& origin = meta.outputs[i].origin;
    if (const auto* is_input = std::get_if<IsInput>(&origin)) {
      outputs[i] = slots[is_input->input.index];
    } else if (const auto* same = std::get_if<SameAsOutput>(&origin)) {
      outputs[i] = outputs[same->output.index];
    } else if (const auto* view = std::get_if<ViewOfInput>(&origin)) {
      outputs[i] = slots[view->slot.index];
    } else if (const auto* based = std::get_if<ViewOfIntermediate>(&origin)) {
      outputs[i] = slots[based->slot.index];
    }
  }
}

}  // namespace foregrad
