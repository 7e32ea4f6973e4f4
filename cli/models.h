// The networks that `foregrad train` and `foregrad explain` know.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace foregrad::cli {

/// Maps pictures [N,1,28,28] to the scores of ten classes [N,10].
class Classifier : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& images) = 0;
};

/// Lists the names that `make_classifier` takes.
const std::vector<std::string>& model_names();

/// Makes a network in training mode, its parameters drawn from the default generator seeded with
/// `seed`: equal seeds give equal parameters. `mlp`: three linear layers. `cnn`: two blocks of
/// convolution, batch norm, ReLU and max pooling, then two linear layers with dropout. Throws a
/// `Failure` of kind `kUsage` for another name.
std::shared_ptr<Classifier> make_classifier(const std::string& name, uint64_t seed);

/// Returns the mean cross entropy of the scores against the labels: what training makes small.
at::Tensor cross_entropy(const at::Tensor& scores, const at::Tensor& labels);

}  // namespace foregrad::cli
