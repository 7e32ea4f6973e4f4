#include "workloads.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tanh.h>

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

}  // namespace foregrad::bench
