#include "workloads.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/autograd.h>

namespace foregrad::bench {

at::Tensor LayerChain::operator()(at::Tensor x, const std::vector<at::Tensor>& weights,
                                  const std::vector<at::Tensor>& biases) const {
  for (std::int64_t layer = 0; layer < operators / 10; ++layer) {
    const auto turn = static_cast<std::size_t>(layer) % weights.size();
    x = at::matmul(x, weights[turn]) + biases[turn];
    x.select(0, 0).mul_(0.5);
    x = at::tanh(x);
    x = x * at::sigmoid(x);
    x = x - x.mean(1, /*keepdim=*/true);
    x.relu_();
  }
  return x;
}

LayerChainInputs::LayerChainInputs() : x(at::rand({8, 16}).set_requires_grad(true)) {
  for (int layer = 0; layer < 4; ++layer) {
    weights.push_back(at::rand({16, 16}).set_requires_grad(true));
    biases.push_back(at::rand({16}).set_requires_grad(true));
  }
}

at::Tensor pointwise_rounds(at::Tensor x, const at::Tensor& y) {
  for (int round = 0; round < 3; ++round) {
    x = at::sin(x) * y + at::sigmoid(x - y) * at::tanh(y);
  }
  return x;
}

std::vector<at::Tensor> sums(const std::vector<at::Tensor>& x) {
  std::vector<at::Tensor> results;
  for (const at::Tensor& tensor : x) results.push_back(tensor + 1);
  return results;
}

std::vector<at::Tensor> written_sums(const std::vector<at::Tensor>& x) {
  for (const at::Tensor& tensor : x) tensor.add_(1);
  return {};
}

std::vector<at::Tensor> chain_of_two(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor first = at::sin(x) * y + x;
  return {first, at::tanh(first) * y + first};
}

std::vector<at::Tensor> last_of_chain(const at::Tensor& x, const at::Tensor& y) {
  return {chain_of_two(x, y).back()};
}

EnergyModel::EnergyModel() {
  const auto weight = [](std::int64_t rows, std::int64_t columns) {
    return at::rand({rows, columns}).sub_(0.5).set_requires_grad(true);
  };
  weights = {weight(6, 16), weight(16, 16), weight(16, 16), weight(16, 1)};
}

namespace {

at::Tensor energy_of(const at::Tensor& positions, const std::vector<at::Tensor>& weights) {
  const at::Tensor between = positions.unsqueeze(0) - positions.unsqueeze(1);
  const at::Tensor apart = 1 - at::eye(positions.size(0), positions.options());
  const at::Tensor distance = (between.square().sum(-1) + 1 - apart).sqrt();
  const at::Tensor centres = at::arange(6, positions.options()) * 0.5;
  const at::Tensor radial = (-(distance.unsqueeze(-1) - centres).square()).exp();
  const at::Tensor edges = at::silu((radial * apart.unsqueeze(-1)).matmul(weights[0]));
  at::Tensor state = edges.sum(1);
  for (int round = 0; round < 2; ++round) {
    const at::Tensor messages = (edges * state.matmul(weights[1]).unsqueeze(0)).sum(1);
    state = state + at::tanh(messages.matmul(weights[2]));
  }
  return state.matmul(weights[3]).sum();
}

}  // namespace

at::Tensor force_matching_loss(const at::Tensor& positions,
                               const std::vector<at::Tensor>& weights) {
  const at::Tensor energy = energy_of(positions, weights);
  const at::Tensor forces =
      -torch::autograd::grad({energy}, {positions}, {}, true, /*create_graph=*/true)[0];
  return (energy - 1).square() + (forces - 0.1).square().mean();
}

}  // namespace foregrad::bench
