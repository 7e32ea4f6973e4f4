// Autograd's graph of histories.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/node.h>

#include <functional>
#include <unordered_set>

namespace foregrad {

/// Visits the edges behind a root, those of each node once. `visit` says whether to go on behind an
/// edge.
void walk_history(const torch::autograd::Edge& root,
                  const std::function<bool(const torch::autograd::Edge&)>& visit);

/// Returns the nodes of the roots and all behind them.
std::unordered_set<const torch::autograd::Node*> nodes_behind(
    const torch::autograd::edge_list& roots);

/// From now on the gradient that flows to the edge ends there. It can still be captured there.
void end_gradient_at(const torch::autograd::Edge& edge);

}  // namespace foregrad
