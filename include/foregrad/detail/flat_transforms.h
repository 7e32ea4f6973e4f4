// Function transforms of functions from tensors to tensors: what the templates of
// `foregrad/transforms.h` call. Not for direct use.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace foregrad {

/// Of random operators in a function that `vmap` calls: an error, the same numbers for each element
/// of the batch, or others for each.
enum class Randomness : std::uint8_t { Error, Same, Different };

namespace detail {

using Tensors = std::vector<at::Tensor>;

/// From the tensors of the arguments to those of the result.
using FlatFunction = std::function<Tensors(const Tensors&)>;

struct Batching {
  std::vector<std::optional<std::int64_t>> in_dims{};  // of each tensor; nothing: not batched
  std::int64_t out_dim = 0;
  Randomness randomness = Randomness::Error;
  std::int64_t chunk_size = 0;  // 0: all at once
};

/// Throws `c10::Error` if no tensor is batched, or not all to the same size.
Tensors vmap(const FlatFunction& fn, const Tensors& inputs, const Batching& batching);

/// Gradients are given for each input, undefined for those that are not wanted, zeros where the
/// result does not depend on one.
struct Gradients {
  Tensors results;
  Tensors gradients;
};

/// Throws `c10::Error` if the first result isn't one floating-point or complex number.
Gradients grad(const FlatFunction& fn, const Tensors& inputs, const std::vector<bool>& is_wanted);

struct PullBack {
  Tensors results;
  FlatFunction pull_back;  // from a gradient of each result, or none, to those of the inputs
};
PullBack vjp(const FlatFunction& fn, const Tensors& inputs, const std::vector<bool>& is_wanted);

struct Pushed {
  Tensors results;
  Tensors tangents;
};
/// `tangents`: of the inputs, undefined where there is none.
Pushed jvp(const FlatFunction& fn, const Tensors& inputs, const Tensors& tangents);

/// The Jacobians of each result, of sizes [result..., input...], for each input.
std::vector<Tensors> jacobians_reverse(const FlatFunction& fn, const Tensors& inputs,
                                       const std::vector<bool>& is_wanted);
std::vector<Tensors> jacobians_forward(const FlatFunction& fn, const Tensors& inputs,
                                       const std::vector<bool>& is_wanted);

Tensors functionalize(const FlatFunction& fn, const Tensors& inputs);

bool is_differentiable(const at::Tensor& tensor);

}  // namespace detail

}  // namespace foregrad
