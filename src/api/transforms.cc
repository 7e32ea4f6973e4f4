#include "foregrad/transforms.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <set>

#include "capture/recorder.h"
#include "capture/transform_layers.h"

namespace foregrad::detail {

namespace {

BatchRandomness to_layer(Randomness randomness) {
  switch (randomness) {
    case Randomness::Same: return BatchRandomness::Same;
    case Randomness::Different: return BatchRandomness::Different;
    default: return BatchRandomness::Error;
  }
}

int64_t batch_size_of(const Tensors& inputs, const Batching& batching) {
  std::set<int64_t> sizes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& dim = batching.in_dims[i];
    if (!dim || !inputs[i].defined()) continue;
    TORCH_CHECK(*dim >= -inputs[i].dim() && *dim < inputs[i].dim(), "foregrad: `vmap`: tensor ", i,
                " of the arguments has no dimension ", *dim, ": its sizes are ", inputs[i].sizes(),
                ". Expected `in_dims` that each tensor has, or nothing for what is not batched.");
    sizes.insert(inputs[i].size(*dim));
  }
  TORCH_CHECK(
      sizes.size() == 1, "foregrad: `vmap`: expected batches of one size, got ",
      sizes.empty() ? "no tensor that is batched" : fmt::format("sizes {}", fmt::join(sizes, ", ")),
      ". Say by `in_dims` which dimension of each argument is the batch.");
  return *sizes.begin();
}

Tensors vmap_at_once(const FlatFunction& fn, const Tensors& inputs, const Batching& batching,
                     int64_t batch_size) {
  std::vector<VmapLayer::Unbatched> unbatched;
  {
    const VmapLayer layer(batch_size, to_layer(batching.randomness));
    Tensors batched = inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& dim = batching.in_dims[i];
      if (!dim || !inputs[i].defined()) continue;
      batched[i] = layer.batch(inputs[i], *dim < 0 ? *dim + inputs[i].dim() : *dim);
    }
    for (const at::Tensor& result : fn(batched)) unbatched.push_back(layer.unbatch(result));
  }
  Tensors results;
  for (const auto& [tensor, dim] : unbatched) {
    if (!tensor.defined()) {
      results.push_back(tensor);
    } else if (dim) {
      results.push_back(tensor.movedim(*dim, batching.out_dim));
    } else {
      const at::Tensor row = tensor.unsqueeze(batching.out_dim);
      std::vector<int64_t> sizes = row.sizes().vec();
      sizes.at(static_cast<size_t>(batching.out_dim < 0 ? batching.out_dim + row.dim()
                                                        : batching.out_dim)) = batch_size;
      results.push_back(row.expand(sizes));
    }
  }
  return results;
}

/// Of the inputs of a level, those that are differentiated.
Tensors wrap_inputs(const GradLayer& layer, const Tensors& inputs,
                    const std::vector<bool>& is_wanted, Tensors& wanted) {
  Tensors wrapped;
  for (size_t i = 0; i < inputs.size(); ++i) {
    wrapped.push_back(inputs[i].defined() ? layer.wrap(inputs[i]) : inputs[i]);
    if (!is_wanted[i]) continue;
    wrapped[i].set_requires_grad(true);
    wanted.push_back(wrapped[i]);
  }
  return wrapped;
}

Tensors unwrap_all(const GradLayer& layer, const Tensors& tensors) {
  Tensors unwrapped;
  for (const at::Tensor& tensor : tensors)
    unwrapped.push_back(tensor.defined() ? layer.unwrap(tensor) : tensor);
  return unwrapped;
}

/// Puts the gradients of those that are wanted in their places; zeros where there is none.
Tensors spread(Tensors gradients, const Tensors& inputs, const std::vector<bool>& is_wanted) {
  Tensors all(inputs.size());
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_wanted[i]) continue;
    at::Tensor gradient = next < gradients.size() ? std::move(gradients[next]) : at::Tensor();
    ++next;
    all[i] = gradient.defined() ? std::move(gradient) : at::zeros_like(inputs[i]);
  }
  return all;
}

at::Tensor one_hot_rows(const at::Tensor& like) {
  std::vector<int64_t> sizes{like.numel()};
  sizes.insert(sizes.end(), like.sizes().begin(), like.sizes().end());
  return at::eye(like.numel(), like.options()).view(sizes);
}

std::vector<int64_t> jacobian_sizes(const at::Tensor& result, const at::Tensor& input) {
  std::vector<int64_t> sizes = result.sizes().vec();
  sizes.insert(sizes.end(), input.sizes().begin(), input.sizes().end());
  return sizes;
}

}  // namespace

bool is_differentiable(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.is_floating_point() || tensor.is_complex());
}

Tensors vmap(const FlatFunction& fn, const Tensors& inputs, const Batching& batching) {
  const int64_t batch_size = batch_size_of(inputs, batching);
  const int64_t step = batching.chunk_size > 0 ? batching.chunk_size : batch_size;
  if (step >= batch_size) return vmap_at_once(fn, inputs, batching, batch_size);
  std::vector<Tensors> chunks;  // of each result
  for (int64_t begin = 0; begin < batch_size; begin += step) {
    const int64_t size = std::min(step, batch_size - begin);
    Tensors part = inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (batching.in_dims[i] && inputs[i].defined())
        part[i] = inputs[i].narrow(*batching.in_dims[i], begin, size);
    }
    const Tensors results = vmap_at_once(fn, part, batching, size);
    chunks.resize(results.size());
    for (size_t k = 0; k < results.size(); ++k) chunks[k].push_back(results[k]);
  }
  Tensors results;
  for (const Tensors& parts : chunks)
    results.push_back(parts[0].defined() ? at::cat(parts, batching.out_dim) : parts[0]);
  return results;
}

Gradients grad(const FlatFunction& fn, const Tensors& inputs, const std::vector<bool>& is_wanted) {
  const GradLayer layer;
  Tensors wanted;
  const Tensors results = fn(wrap_inputs(layer, inputs, is_wanted, wanted));
  TORCH_CHECK(!results.empty() && is_differentiable(results[0]) && results[0].numel() == 1,
              "foregrad: `grad`: expected a function whose result's first tensor is one "
              "floating-point or complex number, got ",
              results.empty() || !results[0].defined()
                  ? std::string("none")
                  : fmt::format("{} of sizes [{}]", c10::toString(results[0].scalar_type()),
                                fmt::join(results[0].sizes(), ", ")),
              ". Sum the result, or use `jacrev`.");
  Tensors gradients;
  if (results[0].requires_grad() && !wanted.empty()) {
    gradients = torch::autograd::grad({results[0]}, wanted, {}, std::nullopt,
                                      /*create_graph=*/true, /*allow_unused=*/true);
  }
  return {.results = unwrap_all(layer, results),
          .gradients = spread(unwrap_all(layer, gradients), inputs, is_wanted)};
}

PullBack vjp(const FlatFunction& fn, const Tensors& inputs, const std::vector<bool>& is_wanted) {
  const GradLayer layer;
  Tensors wanted;
  const Tensors results = fn(wrap_inputs(layer, inputs, is_wanted, wanted));
  auto pull_back = [=](const Tensors& gradients) {
    TORCH_CHECK(gradients.size() == results.size(), "foregrad: `vjp`: expected gradients of ",
                results.size(), " tensors, got ", gradients.size(), ".");
    Tensors roots, tangents, pulled;
    for (size_t k = 0; k < results.size(); ++k) {
      if (!results[k].defined() || !results[k].requires_grad() || !gradients[k].defined()) continue;
      roots.push_back(results[k]);
      tangents.push_back(gradients[k]);
    }
    if (!roots.empty() && !wanted.empty()) {
      pulled = torch::autograd::grad(roots, wanted, tangents, /*retain_graph=*/true,
                                     /*create_graph=*/c10::GradMode::is_enabled(),
                                     /*allow_unused=*/true);
    }
    for (at::Tensor& tensor : pulled) {
      if (tensor.defined()) tensor = unwrap_ended(tensor);
    }
    return spread(std::move(pulled), inputs, is_wanted);
  };
  return {.results = unwrap_all(layer, results), .pull_back = std::move(pull_back)};
}

Pushed jvp(const FlatFunction& fn, const Tensors& inputs, const Tensors& tangents) {
  TORCH_CHECK(tangents.size() == inputs.size(), "foregrad: `jvp`: expected tangents of ",
              inputs.size(), " tensors, got ", tangents.size(), ".");
  const JvpLayer layer;
  Tensors duals;
  for (size_t i = 0; i < inputs.size(); ++i)
    duals.push_back(tangents[i].defined() ? layer.pair(inputs[i], tangents[i]) : inputs[i]);
  Pushed pushed;
  for (const at::Tensor& result : fn(duals)) {
    auto [primal, tangent] = result.defined() ? layer.part(result) : JvpLayer::Parted();
    if (is_differentiable(primal) && !tangent.defined()) tangent = at::zeros_like(primal);
    pushed.results.push_back(std::move(primal));
    pushed.tangents.push_back(std::move(tangent));
  }
  return pushed;
}

std::vector<Tensors> jacobians_reverse(const FlatFunction& fn, const Tensors& inputs,
                                       const std::vector<bool>& is_wanted) {
  const PullBack pulled = vjp(fn, inputs, is_wanted);
  std::vector<Tensors> jacobians;
  for (size_t k = 0; k < pulled.results.size(); ++k) {
    const at::Tensor& result = pulled.results[k];
    Tensors& of_inputs = jacobians.emplace_back(inputs.size());
    if (!is_differentiable(result)) continue;
    const auto pull_back_one = [&](const Tensors& row) {
      Tensors gradients(pulled.results.size());
      gradients[k] = row[0];
      return pulled.pull_back(gradients);
    };
    if (result.numel() > 0)
      of_inputs = vmap(pull_back_one, {one_hot_rows(result)}, {.in_dims = {0}});
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!is_wanted[i]) continue;
      const auto sizes = jacobian_sizes(result, inputs[i]);
      of_inputs[i] = of_inputs[i].defined() ? of_inputs[i].reshape(sizes)
                                            : at::zeros(sizes, inputs[i].options());
    }
  }
  return jacobians;
}

std::vector<Tensors> jacobians_forward(const FlatFunction& fn, const Tensors& inputs,
                                       const std::vector<bool>& is_wanted) {
  std::vector<Tensors> jacobians;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_wanted[i]) continue;
    const auto push_one = [&](const Tensors& row) {
      Tensors tangents(inputs.size());
      tangents[i] = row[0];
      return jvp(fn, inputs, tangents).tangents;
    };
    const bool is_empty = inputs[i].numel() == 0;
    const Tensors rows =
        is_empty ? fn(inputs)
                 : vmap(push_one, {one_hot_rows(inputs[i])}, {.in_dims = {0}, .out_dim = -1});
    jacobians.resize(rows.size(), Tensors(inputs.size()));
    for (size_t k = 0; k < rows.size(); ++k) {
      if (!is_differentiable(rows[k])) continue;
      const at::Tensor result = is_empty ? rows[k] : rows[k].select(-1, 0);
      const auto sizes = jacobian_sizes(result, inputs[i]);
      jacobians[k][i] = is_empty ? at::zeros(sizes, result.options()) : rows[k].reshape(sizes);
    }
  }
  return jacobians;
}

Tensors functionalize(const FlatFunction& fn, const Tensors& inputs) {
  if (is_tracing()) return fn(inputs);  // which functionalizes what it sees
  Tensors results;
  Tensors written;
  {
    const FunctionalizeLayer layer;
    Tensors wrapped;
    for (const at::Tensor& input : inputs)
      wrapped.push_back(input.defined() ? layer.wrap(input) : input);
    for (const at::Tensor& result : fn(wrapped))
      results.push_back(result.defined() ? layer.unwrap(result) : result);
    for (const at::Tensor& input : wrapped)
      written.push_back(input.defined() ? layer.unwrap(input) : input);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || written[i].is_same(inputs[i])) continue;
    if (inputs[i].sizes() != written[i].sizes()) inputs[i].resize_(written[i].sizes());
    inputs[i].copy_(written[i]);
    // A result that is an argument is that one.
    for (at::Tensor& result : results) {
      if (result.is_same(written[i])) result = inputs[i];
    }
  }
  return results;
}

}  // namespace foregrad::detail
