#include "foregrad/value_and_grad.h"

#include <ATen/ops/ones_like.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_set>

#include "runtime/backward_node.h"

namespace foregrad::detail {

namespace {

/// Where each gradient is among those that the node gives; nothing if the engine is needed: other
/// nodes lie between, or hooks.
std::optional<std::vector<size_t>> find_places(torch::autograd::Node& node,
                                               const std::vector<at::Tensor>& wanted) {
  if (!node.pre_hooks().empty() || !node.post_hooks().empty() || !node.tensor_pre_hooks().empty() ||
      node.num_inputs() != 1)
    return std::nullopt;
  std::vector<size_t> places(wanted.size(), node.num_outputs());
  for (size_t i = 0; i < node.num_outputs(); ++i) {
    const torch::autograd::Edge& edge = node.next_edge(i);
    bool is_wanted = false;
    for (size_t k = 0; k < wanted.size(); ++k) {
      if (!wanted[k].is_leaf()) {
        // Its own history may lead to others that are wanted.
        return std::nullopt;
      }
      if (!(torch::autograd::impl::gradient_edge(wanted[k]) == edge)) continue;
      if (!torch::autograd::impl::hooks(wanted[k]).empty()) return std::nullopt;
      places[k] = i;
      is_wanted = true;
    }
    const bool is_leaf = edge.is_valid() && edge.function->next_edges().empty();
    if (!is_wanted && edge.is_valid() && !is_leaf) return std::nullopt;
  }
  return places;
}

}  // namespace

std::vector<at::Tensor> tensors_to_differentiate(const Leaves& arguments,
                                                 const CompileOptions& options) {
  std::vector<at::Tensor> tensors;
  std::unordered_set<const c10::TensorImpl*> known;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.requires_grad() &&
        known.insert(tensor.unsafeGetTensorImpl()).second)
      tensors.push_back(tensor);
  };
  for (const at::Tensor* argument : arguments.tensors) add(*argument);
  for (const ModuleRef& module : options.modules) {
    for (const at::Tensor& parameter : module.get()->parameters()) add(parameter);
  }
  for (const at::Tensor& tensor : options.tensors) add(tensor);
  return tensors;
}

std::vector<at::Tensor> gradients_of(const at::Tensor& loss,
                                     const std::vector<at::Tensor>& wanted) {
  TORCH_CHECK(loss.defined() && loss.numel() == 1 && loss.requires_grad(),
              "foregrad: `value_and_grad`: expected the function's first tensor to be one number "
              "that requires grad, got ",
              loss.defined() ? to_text(type_of(loss)) : "none",
              loss.defined() && !loss.requires_grad() ? " that requires no grad" : "",
              ". Return the loss first.");
  if (wanted.empty()) return {};
  if (auto* node = dynamic_cast<BackwardNode*>(loss.grad_fn().get())) {
    if (const auto places = find_places(*node, wanted)) {
      const c10::AutoGradMode without_graph(false);
      node->will_release_variables();
      const auto gradients = node->apply({at::ones_like(loss)});
      std::vector<at::Tensor> found;
      for (const size_t place : *places)
        found.push_back(place < gradients.size() ? gradients[place] : at::Tensor());
      return found;
    }
  }
  return torch::autograd::grad({loss}, wanted, {}, std::nullopt, /*create_graph=*/false,
                               /*allow_unused=*/true);
}

}  // namespace foregrad::detail
