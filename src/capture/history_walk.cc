#include "capture/history_walk.h"

#include <torch/csrc/autograd/function_hook.h>

#include <memory>
#include <vector>

namespace foregrad {

namespace {

/// Runs after the gradient has been captured.
class GradientEnd final : public torch::autograd::FunctionPreHook {
 public:
  explicit GradientEnd(uint32_t result) : result_(result) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    torch::autograd::variable_list others = gradients;
    others.at(result_).reset();
    return others;
  }

 private:
  uint32_t result_;
};

}  // namespace

void walk_history(const torch::autograd::Edge& root,
                  const std::function<bool(const torch::autograd::Edge&)>& visit) {
  std::unordered_set<const torch::autograd::Node*> seen = {root.function.get()};
  std::vector<const torch::autograd::Node*> to_visit = {root.function.get()};
  while (!to_visit.empty()) {
    const torch::autograd::Node* node = to_visit.back();
    to_visit.pop_back();
    for (const auto& edge : node->next_edges()) {
      if (edge.is_valid() && visit(edge) && seen.insert(edge.function.get()).second)
        to_visit.push_back(edge.function.get());
    }
  }
}

std::unordered_set<const torch::autograd::Node*> nodes_behind(
    const torch::autograd::edge_list& roots) {
  std::unordered_set<const torch::autograd::Node*> found;
  for (const auto& root : roots) {
    found.insert(root.function.get());
    walk_history(root, [&](const torch::autograd::Edge& edge) {
      return found.insert(edge.function.get()).second;
    });
  }
  return found;
}

void end_gradient_at(const torch::autograd::Edge& edge) {
  edge.function->add_pre_hook(std::make_unique<GradientEnd>(edge.input_nr));
}

}  // namespace foregrad
