#include "runtime/specialisation.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>

#include "runtime/call_hooks.h"
#include "runtime/epilogue.h"

namespace foregrad {

std::vector<at::Tensor> distinct_inputs(std::span<const at::Tensor* const> arguments,
                                        std::span<const at::Tensor> lifted) {
  std::vector<at::Tensor> inputs;
  inputs.reserve(arguments.size() + lifted.size());
  for (const at::Tensor* argument : arguments) {
    bool is_new = argument->defined();
    for (const at::Tensor& known : inputs) is_new &= !known.is_same(*argument);
    if (is_new) inputs.push_back(*argument);
  }
  inputs.insert(inputs.end(), lifted.begin(), lifted.end());
  return inputs;
}

namespace {

/// Whether the effects change more of it than its elements.
bool is_moved(const ViewAndMutationMeta& meta, BaseIndex index) {
  const Slot slot = meta.bases[index.index].slot;
  return std::ranges::any_of(meta.effects, [&](const Effect& effect) {
    const auto* call = std::get_if<CallAgain>(&effect);
    if (!call) return false;
    const auto& arguments = call->op.op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto* argument = std::get_if<ValueId>(&call->op.args[i]);
      const auto* alias = arguments[i].alias_info();
      if (argument && argument->index == slot.index && alias && alias->isWrite()) return true;
    }
    return false;
  });
}

}  // namespace

Specialisation::Specialisation(SpecialisationParts parts) : parts_(std::move(parts)) {
  const auto& outputs = parts_.forward.outputs;
  std::vector<bool> is_user_output(parts_.forward.values.size());
  std::map<uint32_t, InputIndex> written_back;
  for (const GraphOutput& output : outputs) {
    if (!output.value) continue;
    if (std::holds_alternative<UserOutput>(output.role)) is_user_output[output.value->index] = true;
    const auto* mutated = std::get_if<MutatedInput>(&output.role);
    if (!mutated) continue;
    const InputInfo& info = parts_.meta.inputs[mutated->of.index];
    const TensorType& type = parts_.forward.type(*output.value);
    if (info.written_parts.empty() && !info.metadata_mutated && !info.storage_changed &&
        type.sizes == info.type.sizes && type.strides == info.type.strides)
      written_back.emplace(output.value->index, mutated->of);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!std::holds_alternative<Saved>(outputs[i].role)) continue;
    const uint32_t value = outputs[i].value->index;
    const auto input = written_back.find(value);
    const bool is_moved_input =
        std::ranges::any_of(parts_.forward.inputs, [&](const GraphInput& primal) {
          if (primal.value.index != value) return false;
          const InputInfo& info = parts_.meta.inputs[primal_of(primal.role)->index];
          return info.metadata_mutated || info.storage_changed;
        });
    const bool is_moved_base = std::ranges::any_of(outputs, [&](const GraphOutput& output) {
      const auto* base = std::get_if<IntermediateBase>(&output.role);
      return base && output.value == outputs[i].value && is_moved(parts_.meta, base->base);
    });
    std::optional<size_t> in_output;
    if (const auto found = parts_.saved_in_outputs.find(*outputs[i].value);
        found != parts_.saved_in_outputs.end())
      in_output = found->second;
    saved_.push_back(
        {.result = {.position = i, .is_output = is_user_output[value], .in_output = in_output},
         .is_moved = is_moved_input || is_moved_base,
         .written_back =
             input == written_back.end() ? std::nullopt : std::optional(input->second)});
  }
  for (const GraphInput& input : parts_.forward.inputs)
    graph_inputs_.push_back(*primal_of(input.role));
}

/// A call that throws has drawn no random numbers.
std::vector<at::Tensor> Specialisation::run_forward(const std::vector<at::Tensor>& inputs) const {
  std::vector<at::Tensor> primals;
  primals.reserve(graph_inputs_.size());
  for (const InputIndex input : graph_inputs_) primals.push_back(inputs[input.index]);
  if (!parts_.draws_random) return parts_.run_forward(std::move(primals));
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor state = [&] {
    std::lock_guard lock(generator.mutex());
    return generator.get_state();
  }();
  try {
    return parts_.run_forward(std::move(primals));
  } catch (...) {
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
    throw;
  }
}

std::vector<at::Tensor> Specialisation::run(std::span<const at::Tensor* const> arguments) {
  const ViewAndMutationMeta& meta = parts_.meta;
  std::vector<at::Tensor> inputs = distinct_inputs(arguments, parts_.lifted);
  append_found_inputs(meta, inputs);
  std::vector<at::Tensor> results = run_forward(inputs);

  std::vector<at::Tensor> outputs(meta.outputs.size());
  CallNodes nodes(meta, parts_.nodes, inputs, outputs);
  const StorageResizes resizes(meta, inputs);
  resizes.grow();
  std::vector<at::Tensor>& slots = inputs;  // inputs are the first slots
  slots.resize(std::max<size_t>(meta.slot_count, inputs.size()));
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputRole& role = parts_.forward.outputs[i].role;
    if (const auto* mutated = std::get_if<MutatedInput>(&role)) {
      write_back(meta, mutated->of, inputs, results[i]);
    } else if (const auto* base = std::get_if<IntermediateBase>(&role)) {
      slots[meta.bases[base->base.index].slot.index] = results[i];
    } else if (const auto* user = std::get_if<UserOutput>(&role)) {
      outputs[user->output.index] = results[i];
    }
  }
  // What backward reads of an input or a base is the tensor as it lay.
  for (const SavedOutput& saved : saved_) {
    at::Tensor& result = results[saved.result.position];
    if (saved.is_moved) result = result.detach();
  }
  CallHooks hooks(meta);
  hooks.register_first(slots);
  bring_about(meta, slots, [&](const Differentiable& role, const at::Tensor& tensor) {
    return nodes.history_of(role, tensor);
  });
  finish_new_tensors(outputs);
  nodes.finish();
  for (size_t p = 0; p < parts_.nodes.size(); ++p) {
    if (const auto& node = nodes.node(p)) save(p, node, slots, results);
  }
  take_aliases(meta, slots, outputs);
  resizes.shrink();
  hooks.finish(slots, outputs);
  while (!outputs.empty() && meta.outputs[outputs.size() - 1].is_hidden) outputs.pop_back();
  return outputs;
}

void Specialisation::save(size_t part, const c10::intrusive_ptr<BackwardNode>& node,
                          std::span<const at::Tensor> slots,
                          std::span<const at::Tensor> results) const {
  const ViewAndMutationMeta& meta = parts_.meta;
  node->reserve(parts_.nodes[part].saved.size());
  for (const size_t i : parts_.nodes[part].saved) {
    const SavedOutput& saved = saved_[i];
    // An input that was written is saved itself: a later write to it is noticed as in eager.
    if (saved.written_back) {
      const at::Tensor& input = slots[saved.written_back->index];
      node->save(input, node->is_history_of(input));
    } else {
      node->save(results, saved.result);
    }
  }
  for (const InputIndex input : parts_.kept_weakly) node->keep_weakly(slots[input.index]);
  for (const InputIndex input : parts_.late) node->keep_late(input, slots[input.index]);
  for (uint32_t i = 0; i < meta.inputs.size(); ++i) {
    if (!meta.inputs[i].is_saved_itself()) node->note_version({i}, slots[i]);
  }
  for (const BaseInfo& base : meta.bases) {
    if (slots[base.slot.index].defined()) node->note_version(base.slot, slots[base.slot.index]);
  }
}

void Specialisation::finish_new_tensors(std::span<const at::Tensor> outputs) const {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputInfo& info = parts_.meta.outputs[i];
    if (!info.is_computed()) continue;
    if (!outputs[i].is_inference()) {
      for (auto version = outputs[i]._version(); version < info.version; ++version)
        torch::autograd::impl::bump_version(outputs[i]);
    }
    if (info.requires_grad && !info.takes_tangent())
      outputs[i].unsafeGetTensorImpl()->set_requires_grad(true);
  }
}

}  // namespace foregrad
