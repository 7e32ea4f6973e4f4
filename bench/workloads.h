// The functions that are measured. What they compute is of no interest; how many operators they
// call, and of what kinds, is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace foregrad::bench {

/// A chain of layers: each calls ten operators, every one once: `matmul`, `add`, `select`, `mul_`
/// (through the view), `tanh`, `sigmoid`, `mul`, `mean`, `sub`, `relu_`. The layers take turns with
/// the weights, so the number of inputs does not grow with the chain.
struct LayerChain {
  std::int64_t operators = 0;  // a multiple of ten

  at::Tensor operator()(at::Tensor x, const std::vector<at::Tensor>& weights,
                        const std::vector<at::Tensor>& biases) const;
};

/// What a `LayerChain` takes: [8,16] floats and four layers' parameters, all of which require grad.
struct LayerChainInputs {
  at::Tensor x;
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> biases;

  LayerChainInputs();
};

/// Three rounds of `x = sin(x) * y + sigmoid(x - y) * tanh(y)`: 21 pointwise operators.
at::Tensor pointwise_rounds(at::Tensor x, const at::Tensor& y);

/// Adds one to each argument: gives the sums.
std::vector<at::Tensor> sums(const std::vector<at::Tensor>& x);
/// The same, written to the arguments.
std::vector<at::Tensor> written_sums(const std::vector<at::Tensor>& x);

/// Six pointwise operators, the last three on what the first three give: gives both results.
std::vector<at::Tensor> chain_of_two(const at::Tensor& x, const at::Tensor& y);
/// The same, gives the last.
std::vector<at::Tensor> last_of_chain(const at::Tensor& x, const at::Tensor& y);

/// The parameters of a message-passing energy of a cloud of atoms: radial functions to edges
/// [6,16], messages and updates [16,16], read-out [16,1].
struct EnergyModel {
  std::vector<at::Tensor> weights;

  EnergyModel();
};

/// Squared error of an energy and of its forces, which are taken inside: positions [atoms,3] to a
/// scalar.
at::Tensor force_matching_loss(const at::Tensor& positions, const std::vector<at::Tensor>& weights);

}  // namespace foregrad::bench
