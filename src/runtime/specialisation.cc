#include "runtime/specialisation.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/function.h>

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

Specialisation::Specialisation(SpecialisationParts parts)
    : parts_(std::move(parts)),
      forward_(parts_.forward),
      tangent_count_(parts_.meta.tangents().size()) {
  const auto& outputs = parts_.forward.outputs;
  std::vector<bool> is_user_output(parts_.forward.values.size());
  for (const GraphOutput& output : outputs) {
    if (output.value && std::holds_alternative<UserOutput>(output.role))
      is_user_output[output.value->index] = true;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!std::holds_alternative<Saved>(outputs[i].role)) continue;
    saved_.push_back({.position = i, .is_user_output = is_user_output[outputs[i].value->index]});
  }
  if (parts_.backward) {
    backwards_.emplace(TangentMask(tangent_count_, true),
                       *std::exchange(parts_.backward, std::nullopt));
  }
}

c10::intrusive_ptr<BackwardNode> Specialisation::make_node(std::span<const at::Tensor> inputs) {
  if (tangent_count_ == 0) return {};
  auto node = c10::make_intrusive<BackwardNode>(shared_from_this(), tangent_count_);
  torch::autograd::edge_list edges;
  edges.reserve(parts_.differentiated.size());
  for (const InputIndex input : parts_.differentiated) {
    edges.push_back(torch::autograd::impl::gradient_edge(inputs[input.index]));
  }
  node->set_next_edges(std::move(edges));
  return node;
}

/// A call that throws has drawn no random numbers.
std::vector<at::Tensor> Specialisation::run_forward(const std::vector<at::Tensor>& inputs) const {
  if (!parts_.draws_random) return forward_.run(inputs);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor state = [&] {
    std::lock_guard lock(generator.mutex());
    return generator.get_state();
  }();
  try {
    return forward_.run(inputs);
  } catch (...) {
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
    throw;
  }
}

std::vector<at::Tensor> Specialisation::run(std::span<const at::Tensor* const> arguments) {
  const std::vector<at::Tensor> inputs = distinct_inputs(arguments, parts_.lifted);
  std::vector<at::Tensor> results = run_forward(inputs);

  const auto node = make_node(inputs);
  std::vector<at::Tensor> outputs(parts_.meta.outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputRole& role = parts_.forward.outputs[i].role;
    if (const auto* mutated = std::get_if<MutatedInput>(&role)) {
      write_back(inputs[mutated->of.index], results[i], parts_.meta.inputs[mutated->of.index],
                 node);
    } else if (const auto* user = std::get_if<UserOutput>(&role)) {
      const OutputInfo& info = parts_.meta.outputs[user->output.index];
      outputs[user->output.index] = results[i];
      for (auto version = results[i]._version(); version < info.version; ++version) {
        torch::autograd::impl::bump_version(results[i]);
      }
      if (info.takes_tangent()) {
        torch::autograd::create_gradient_edge(outputs[user->output.index], node);
      }
    }
  }
  if (node) {
    node->reserve(saved_.size());
    for (const SavedOutput& saved : saved_)
      node->save(results[saved.position], saved.is_user_output);
  }
  regenerate_aliases(parts_.meta, inputs, outputs);
  return outputs;
}

const Backward& Specialisation::backward_for(const TangentMask& mask) {
  std::lock_guard lock(mutex_);
  auto found = backwards_.find(mask);
  if (found == backwards_.end()) found = backwards_.emplace(mask, parts_.make_backward(mask)).first;
  return found->second;
}

}  // namespace foregrad
