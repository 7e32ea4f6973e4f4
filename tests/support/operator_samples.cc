#include "support/operator_samples.h"

#include <ATen/ops/clone.h>

#include <functional>
#include <map>
#include <string>

namespace foregrad::testing {

namespace {

using Stack = torch::jit::Stack;
using Ints = std::vector<int64_t>;
using Draw = std::function<Stack(Sampler&)>;

/// Sizes with the first `dims` changed seldom: what does not fit must not be covered.
Ints nearly(Sampler& s, Ints sizes) {
  if (!sizes.empty() && s.one_in(15))
    ++sizes[static_cast<size_t>(s.between(0, static_cast<int64_t>(sizes.size()) - 1))];
  return sizes;
}

/// The same dtype mostly.
at::ScalarType nearly(Sampler& s, at::ScalarType dtype) {
  return s.one_in(20) ? s.any_dtype() : dtype;
}

at::Tensor like(Sampler& s, const Ints& sizes, at::ScalarType dtype) {
  return s.tensor(nearly(s, sizes), nearly(s, dtype));
}

c10::IValue maybe(Sampler& s, const at::Tensor& tensor) {
  return s.one_in(3) ? c10::IValue() : c10::IValue(tensor);
}

c10::List<bool> mask(Sampler& s, int64_t count) {
  c10::List<bool> flags;
  for (int64_t i = 0; i < count; ++i) flags.push_back(!s.one_in(4));
  return flags;
}

Ints repeated(Sampler& s, size_t count, int64_t low, int64_t high) {
  Ints numbers(count);
  for (int64_t& number : numbers) number = s.between(low, high);
  return numbers;
}

/// [N, C, spatial…] or [C, spatial…].
Ints batch_sizes(Sampler& s, size_t spatial, int64_t low, int64_t high,
                 bool may_lack_batch = true) {
  Ints sizes = repeated(s, spatial + 2, low, high);
  sizes[0] = s.between(1, 3);
  sizes[1] = s.between(1, 4);
  if (may_lack_batch && s.one_in(4)) sizes.erase(sizes.begin());
  if (s.one_in(25)) sizes[0] = 0;
  return sizes;
}

Ints with_last(Ints sizes, const Ints& last) {
  std::copy(last.rbegin(), last.rend(), sizes.rbegin());
  return sizes;
}

Draw adaptive(size_t spatial, bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = s.floating();
    const Ints sizes = batch_sizes(s, spatial, 1, 5);
    const Ints pooled = repeated(s, spatial, 1, 4);
    if (!is_backward) return {s.tensor(sizes, dtype), pooled};
    return {s.tensor(with_last(sizes, pooled), nearly(s, dtype)), s.tensor(sizes, dtype)};
  };
}

Draw padded(size_t spatial, bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = nearly(s, s.floating());
    const Ints sizes = batch_sizes(s, spatial, 3, 4);
    const Ints padding = repeated(s, 2 * spatial, 0, 2);
    if (!is_backward) return {s.tensor(sizes, dtype), padding};
    Ints grown = sizes;
    for (size_t i = 0; i < spatial; ++i)
      grown[grown.size() - 1 - i] += padding[2 * i] + padding[2 * i + 1];
    return {s.tensor(grown, dtype).contiguous(), s.tensor(sizes, dtype), padding};
  };
}

struct Window {
  Ints kernel, stride, padding, dilation;
  bool ceil = false;
  explicit Window(Sampler& s, size_t spatial)
      : kernel(repeated(s, spatial, 1, 3)),
        stride(repeated(s, spatial, 1, 2)),
        padding(repeated(s, spatial, 0, 1)),
        dilation(repeated(s, spatial, 1, 2)),
        ceil(s.one_in(3)) {}
  Ints places(const Ints& sizes) const {
    Ints places = sizes;
    for (size_t i = 0; i < kernel.size(); ++i) {
      int64_t& size = places[places.size() - kernel.size() + i];
      const int64_t whole = size;
      size = (whole + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1 +
              (ceil ? stride[i] - 1 : 0)) /
                 stride[i] +
             1;
      if (ceil && (size - 1) * stride[i] >= whole + padding[i]) --size;
      size = std::max<int64_t>(size, 1);
    }
    return places;
  }
};

Draw max_pool(size_t spatial, bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = nearly(s, s.floating());
    const Window w(s, spatial);
    const Ints sizes = batch_sizes(s, spatial, 3, 6);
    const at::Tensor self = s.tensor(sizes, dtype);
    if (!is_backward)
      return {self, w.kernel, s.one_in(4) ? Ints{} : w.stride, w.padding, w.dilation, w.ceil};
    return {
        s.tensor(w.places(sizes), dtype), self, w.kernel, w.stride, w.padding, w.dilation, w.ceil,
        s.indices(w.places(sizes))};
  };
}

Draw average_pool(size_t spatial, bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = nearly(s, s.floating());
    Window w(s, spatial);
    std::fill(w.dilation.begin(), w.dilation.end(), 1);
    const Ints sizes = batch_sizes(s, spatial, 3, 6);
    Stack stack{s.tensor(sizes, dtype), w.kernel, w.stride, w.padding, w.ceil, s.one_in(2),
                c10::IValue()};
    if (is_backward) stack.insert(stack.begin(), like(s, w.places(sizes), dtype));
    return stack;
  };
}

Draw grid(size_t spatial, bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = nearly(s, s.floating());
    const Ints sizes = batch_sizes(s, spatial, 1, 4, false);
    Ints places = repeated(s, spatial, 1, 3);
    Ints grid_sizes{sizes[0]};
    grid_sizes.insert(grid_sizes.end(), places.begin(), places.end());
    grid_sizes.push_back(static_cast<int64_t>(spatial));
    Stack stack{s.tensor(sizes, dtype), like(s, grid_sizes, dtype), s.between(0, 2),
                s.between(0, 2), s.one_in(2)};
    if (is_backward) {
      stack.insert(stack.begin(), s.tensor(with_last(sizes, places), dtype));
      stack.emplace_back(mask(s, 2));
    }
    return stack;
  };
}

Draw columns(bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = nearly(s, s.floating());
    Window w(s, 2);
    w.ceil = false;
    const Ints sizes = batch_sizes(s, 2, 4, 6);
    if (!is_backward) return {s.tensor(sizes, dtype), w.kernel, w.dilation, w.padding, w.stride};
    const Ints places = w.places(sizes);
    Ints given(sizes.begin(), sizes.end() - 2);
    given.back() *= w.kernel[0] * w.kernel[1];
    given.push_back(places[places.size() - 1] * places[places.size() - 2]);
    return {like(s, given, dtype),
            Ints(sizes.end() - 2, sizes.end()),
            w.kernel,
            w.dilation,
            w.padding,
            w.stride};
  };
}

Draw convolution(bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = nearly(s, s.one_in(3) ? s.floating() : at::kFloat);
    const auto spatial = static_cast<size_t>(s.one_of<int64_t>({1, 2, 2, 2, 3}));
    Window w(s, spatial);
    w.ceil = false;
    const int64_t groups = s.one_of<int64_t>({1, 1, 2});
    Ints sizes = batch_sizes(s, spatial, 5, 7, false);
    if (s.one_in(5)) sizes[0] = 17;
    sizes[1] = groups * s.between(1, 3);
    Ints weight{groups * s.between(1, 3), sizes[1] / groups};
    weight.insert(weight.end(), w.kernel.begin(), w.kernel.end());
    const bool transposed = s.one_in(8);
    Stack stack{s.tensor(sizes, dtype), like(s, weight, dtype)};
    if (!is_backward) stack.push_back(maybe(s, s.tensor(Ints{weight[0]}, dtype)));
    if (is_backward) {
      Ints places = w.places(sizes);
      places[1] = weight[0];
      stack.insert(stack.begin(), s.tensor(places, dtype));
      stack.emplace_back(Ints{weight[0]});
    }
    const Stack rest{w.stride, w.padding, w.dilation, transposed, Ints(spatial, 0), groups};
    stack.insert(stack.end(), rest.begin(), rest.end());
    if (is_backward) stack.emplace_back(mask(s, 3));
    return stack;
  };
}

at::ScalarType parameter_dtype(Sampler& s, at::ScalarType dtype) {
  return s.one_in(6) ? at::kFloat : nearly(s, dtype);
}

Stack layer_norm(Sampler& s) {
  const auto dtype = s.floating();
  const auto weights = parameter_dtype(s, dtype);
  const Ints sizes = s.sizes(1, 4);
  const Ints normalized(sizes.end() - s.between(1, static_cast<int64_t>(sizes.size())),
                        sizes.end());
  return {s.tensor(sizes, dtype), nearly(s, normalized), maybe(s, s.tensor(normalized, weights)),
          maybe(s, s.tensor(normalized, weights)), 1e-5};
}

Stack layer_norm_backward(Sampler& s) {
  const auto dtype = s.floating();
  const auto weights = parameter_dtype(s, dtype);
  const Ints sizes = s.sizes(1, 4);
  const auto count = s.between(1, static_cast<int64_t>(sizes.size()));
  const Ints normalized(sizes.end() - count, sizes.end());
  Ints statistics = sizes;
  std::fill(statistics.end() - count, statistics.end(), 1);
  const c10::IValue weight = maybe(s, s.tensor(normalized, weights));
  const c10::IValue bias = maybe(s, s.tensor(normalized, weights));
  auto flags = mask(s, 3);
  if (weight.isNone()) flags[1] = false;
  if (bias.isNone()) flags[2] = false;
  return {like(s, sizes, dtype),
          s.tensor(sizes, dtype),
          normalized,
          s.tensor(statistics, weights),
          s.tensor(statistics, weights),
          weight,
          bias,
          flags};
}

Draw group_norm(bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = s.floating();
    const auto weights = parameter_dtype(s, dtype);
    const int64_t groups = s.between(1, 2);
    Ints sizes = batch_sizes(s, static_cast<size_t>(s.between(0, 3)), 1, 4, false);
    sizes[1] = groups * s.between(1, 3);
    int64_t rest = 1;
    for (size_t i = 2; i < sizes.size(); ++i) rest *= sizes[i];
    const Ints counts = nearly(s, Ints{sizes[0], sizes[1], rest, groups});
    const c10::IValue weight = maybe(s, s.tensor(Ints{sizes[1]}, weights));
    if (!is_backward) {
      return {s.tensor(sizes, dtype),
              weight,
              maybe(s, s.tensor(Ints{sizes[1]}, weights)),
              counts[0],
              counts[1],
              counts[2],
              counts[3],
              1e-5};
    }
    const Ints statistics{sizes[0], groups};
    return {like(s, sizes, dtype),
            s.tensor(sizes, dtype),
            s.tensor(statistics, weights),
            s.tensor(statistics, weights),
            weight,
            counts[0],
            counts[1],
            counts[2],
            counts[3],
            mask(s, 3)};
  };
}

Draw batch_norm(bool is_backward, bool is_functional) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = s.floating();
    const auto weights = parameter_dtype(s, dtype);
    Ints sizes = batch_sizes(s, static_cast<size_t>(s.between(0, 3)), 1, 4, false);
    if (is_backward) sizes[0] = std::max<int64_t>(sizes[0], 1);  // libtorch divides by it
    const Ints channels{sizes[1]};
    const auto each = [&] { return s.tensor(nearly(s, channels), weights); };
    const bool training = is_functional || s.one_in(2);
    const c10::IValue weight = maybe(s, each());
    const at::Tensor input = s.tensor(sizes, dtype);
    if (!is_backward) {
      if (is_functional)
        return {input, weight, maybe(s, each()), each(), each(), training, 0.1, 1e-5};
      const bool has_statistics = !training || !s.one_in(4);
      const auto statistics = [&] { return has_statistics ? c10::IValue(each()) : c10::IValue(); };
      return {input, weight, maybe(s, each()), statistics(), statistics(), training, 0.1, 1e-5};
    }
    const auto saved = [&] { return training ? each() : s.tensor(Ints{0}, weights); };
    auto flags = mask(s, 3);
    if (weight.isNone()) flags[1] = false;
    return {like(s, sizes, dtype),
            input,
            weight,
            each(),
            each(),
            saved(),
            saved(),
            training,
            1e-5,
            flags};
  };
}

/// Without what training says, or without statistics.
Draw batch_norm_but(std::vector<size_t> left_out) {
  return [=](Sampler& s) -> Stack {
    Stack all = batch_norm(false, false)(s);
    if (left_out.size() == 1) all[5] = false;
    for (size_t i : left_out) all.erase(all.begin() + static_cast<ptrdiff_t>(i));
    return all;
  };
}

Draw weight_norm(bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = s.one_of({at::kFloat, at::kDouble});
    const Ints sizes = s.sizes(1, 3);
    const int64_t dim = s.one_in(2) ? 0 : static_cast<int64_t>(sizes.size()) - 1;
    Ints lengths(sizes.size(), 1);
    lengths[static_cast<size_t>(dim)] = sizes[static_cast<size_t>(dim)];
    // libtorch does not look whether the lengths fit, nor how they lie.
    if (!is_backward) return {s.tensor(sizes, dtype), s.tensor(lengths, dtype).contiguous(), dim};
    return {s.tensor(sizes, dtype), s.tensor(sizes, dtype).contiguous(),
            s.tensor(lengths, dtype).contiguous(), s.tensor(lengths, dtype).contiguous(), dim};
  };
}

Stack glu_backward(Sampler& s) {
  const auto dtype = s.floating();
  Ints sizes = s.sizes(1, 4);
  const Ints halved = sizes;
  const auto dim = s.between(0, static_cast<int64_t>(sizes.size()) - 1);
  sizes[static_cast<size_t>(dim)] *= 2;
  return {like(s, halved, dtype), s.tensor(sizes, dtype), dim};
}

Draw attention(bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = s.floating();
    const Ints query{s.between(1, 2), s.between(1, 3), s.between(1, 4), s.between(1, 4)};
    Ints key = query;
    key[2] = s.between(1, 4);
    const bool is_causal = s.one_in(2);
    const auto dense = [&](const Ints& sizes) {
      return s.one_in(2) ? s.tensor(sizes, dtype)
                         : s.tensor(Ints{sizes[0], sizes[2], sizes[1], sizes[3]}, dtype)
                               .contiguous()
                               .transpose(1, 2);
    };
    Stack stack{dense(query), dense(key), dense(key)};
    if (is_backward) {
      const auto full = dtype == at::kBFloat16 || dtype == at::kHalf ? at::kFloat : dtype;
      stack.insert(stack.begin(), dense(query));
      stack.emplace_back(dense(query));
      stack.emplace_back(
          s.tensor(Ints{query[0], query[2], query[1]}, full).contiguous().transpose(1, 2));
    }
    const Stack rest{0.0, is_causal, c10::IValue(), c10::IValue()};
    stack.insert(stack.end(), rest.begin(), rest.end());
    return stack;
  };
}

Draw cross_entropy(bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = s.floating();
    const Ints sizes = s.sizes(0, 4);
    const int64_t reduction = s.between(0, 2);
    Stack stack{s.tensor(sizes, dtype), like(s, sizes, dtype), maybe(s, like(s, sizes, dtype)),
                reduction};
    if (is_backward) stack.insert(stack.begin(), s.tensor(reduction == 0 ? sizes : Ints{}, dtype));
    return stack;
  };
}

Stack huber_loss(Sampler& s) {
  const auto dtype = s.floating();
  const Ints sizes = s.sizes(0, 4);
  return {s.tensor(sizes, dtype), like(s, sizes, dtype), s.between(0, 2), 0.5};
}

Stack mse_loss_backward(Sampler& s) {
  const auto dtype = s.floating();
  const Ints sizes = s.sizes(0, 4);
  const int64_t reduction = s.between(0, 2);
  return {s.tensor(reduction == 0 ? sizes : Ints{}, dtype), s.tensor(sizes, dtype),
          like(s, sizes, dtype), reduction};
}

Draw nll_loss2d(bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = s.floating();
    const Ints sizes = batch_sizes(s, 2, 1, 4, false);
    const Ints target{sizes[0], sizes[2], sizes[3]};
    const int64_t reduction = s.between(0, 2);
    Stack stack{s.tensor(sizes, dtype), s.indices(nearly(s, target)),
                maybe(s, like(s, Ints{sizes[1]}, dtype)), reduction, int64_t{-100}};
    if (is_backward) {
      stack.insert(stack.begin(), s.tensor(reduction == 0 ? target : Ints{}, dtype));
      stack.emplace_back(s.tensor(Ints{}, dtype));
    }
    return stack;
  };
}

Draw margin_loss(bool has_several, bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = s.one_of({at::kFloat, at::kDouble, at::kHalf});
    const Ints sizes = s.sizes(1, 2);
    const Ints target = has_several || sizes.size() == 1 ? sizes : Ints{sizes[0]};
    const int64_t reduction = s.between(0, 2);
    const Ints loss = reduction == 0 && sizes.size() == 2 ? Ints{sizes[0]} : Ints{};
    Stack stack{s.tensor(sizes, dtype), s.indices(target)};
    if (is_backward) stack.insert(stack.begin(), s.tensor(loss, dtype));
    if (!has_several) {
      const Stack more{int64_t{1}, int64_t{1}, c10::IValue()};
      stack.insert(stack.end(), more.begin(), more.end());
    }
    stack.emplace_back(reduction);
    if (has_several && is_backward) stack.emplace_back(s.tensor(sizes, dtype));
    return stack;
  };
}

Draw distances(bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = s.one_of({at::kFloat, at::kDouble, at::kHalf});
    Ints a = s.sizes(2, 4);
    Ints b = a;
    b[b.size() - 2] = s.between(1, 4);
    const double p = s.one_of({2.0, 1.0, 0.5});
    Stack stack{s.tensor(a, dtype), like(s, b, dtype), p};
    if (!is_backward) {
      stack.emplace_back(s.one_in(2) ? c10::IValue() : c10::IValue(s.between(0, 2)));
      return stack;
    }
    a.back() = b[b.size() - 2];
    stack.insert(stack.begin(), s.tensor(a, dtype));
    stack.emplace_back(s.tensor(a, dtype));
    return stack;
  };
}

Draw pair_distances(bool is_backward) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = s.one_of({at::kFloat, at::kDouble});
    const Ints sizes{s.between(2, 4), s.between(1, 3)};
    const Ints pairs{sizes[0] * (sizes[0] - 1) / 2};
    if (!is_backward) return {like(s, sizes, dtype), 2.0};
    return {s.tensor(pairs, dtype), s.tensor(sizes, dtype).contiguous(), 2.0,
            s.tensor(pairs, dtype).contiguous()};
  };
}

/// A factor that is no singular matrix.
at::Tensor factor(Sampler& s, Ints batch, int64_t size, at::ScalarType dtype) {
  batch.push_back(size);
  batch.push_back(size);
  at::Tensor matrix = at::clone(s.tensor(batch, dtype));
  matrix.diagonal(0, -2, -1).fill_(2);
  return matrix;
}

Stack cholesky_inverse(Sampler& s) {
  return {factor(s, s.sizes(0, 2), s.between(1, 3), s.one_of({at::kFloat, at::kDouble})),
          s.one_in(2)};
}

Stack cholesky_solve(Sampler& s) {
  const auto dtype = s.one_of({at::kFloat, at::kDouble});
  const Ints batch = s.sizes(0, 2);
  const int64_t size = s.between(1, 3);
  Ints right = batch;
  right.push_back(size);
  right.push_back(s.between(1, 3));
  return {s.tensor(right, dtype), factor(s, batch, size, dtype), s.one_in(2)};
}

Stack embedding(Sampler& s) {
  return {like(s, Ints{s.between(1, 4), s.between(1, 3)}, s.any_dtype()),
          s.indices(s.sizes(0, 3), nearly(s, at::kLong)), int64_t{-1}, false, false};
}

Stack embedding_dense_backward(Sampler& s) {
  const Ints places = s.sizes(0, 3);
  Ints grad = places;
  grad.push_back(s.between(1, 3));
  return {like(s, grad, s.floating()), s.indices(places), s.between(1, 3), int64_t{-1},
          s.one_in(2)};
}

Stack index_select(Sampler& s) {
  const Ints sizes = s.sizes(0, 4);
  const auto dims = static_cast<int64_t>(sizes.size());
  return {s.tensor(sizes, s.any_dtype()), s.between(-dims, dims),
          s.indices(s.sizes(0, 1), nearly(s, at::kLong))};
}

Stack roll(Sampler& s) {
  const Ints sizes = s.sizes(1, 5);
  const auto count = static_cast<size_t>(s.between(0, 2));
  return {s.tensor(sizes, s.any_dtype()), repeated(s, count, -3, 3),
          repeated(s, count, 0, static_cast<int64_t>(sizes.size()) - 1)};
}

Stack unfold_backward(Sampler& s) {
  const Ints sizes = s.sizes(1, 3);
  const auto dim = s.between(0, static_cast<int64_t>(sizes.size()) - 1);
  const int64_t step = s.between(1, 2);
  const int64_t size = s.between(1, std::max<int64_t>(sizes[static_cast<size_t>(dim)], 1));
  Ints grad = sizes;
  grad[static_cast<size_t>(dim)] = (sizes[static_cast<size_t>(dim)] - size) / step + 1;
  grad.push_back(size);
  return {like(s, grad, s.floating()), sizes, dim, size, step};
}

Stack repeat_interleave(Sampler& s) {
  const int64_t count = s.between(1, 4);
  return {s.tensor(Ints{count}, s.one_of({at::kLong, at::kInt})),
          s.one_in(8) ? c10::IValue() : c10::IValue(count)};
}

Stack masked_scatter_backward(Sampler& s) {
  const Ints sizes = s.sizes(0, 4);
  return {s.tensor(sizes, s.floating()), s.indices(nearly(s, sizes), at::kBool), s.sizes(0, 3)};
}

Stack bucketize(Sampler& s) {
  const auto dtype = s.any_dtype();
  return {s.tensor(s.sizes(0, 3), dtype), like(s, Ints{s.between(1, 4)}, dtype), s.one_in(2),
          s.one_in(2)};
}

Stack searchsorted(Sampler& s) {
  Stack stack = bucketize(s);
  std::swap(stack[0], stack[1]);
  stack.emplace_back();
  stack.emplace_back();
  return stack;
}

Stack multinomial(Sampler& s) {
  return {s.tensor(s.sizes(1, 2), s.floating()), s.between(1, 3), s.one_in(2), c10::IValue()};
}

Draw pixels(bool is_down) {
  return [=](Sampler& s) -> Stack {
    const int64_t factor = s.between(1, 3);
    Ints sizes = batch_sizes(s, 2, 1, 3);
    if (is_down) {
      sizes[sizes.size() - 1] *= factor;
      sizes[sizes.size() - 2] *= factor;
    } else {
      sizes[sizes.size() - 3] *= factor * factor;
    }
    return {like(s, sizes, nearly(s, s.floating())), factor};
  };
}

Stack channels(Sampler& s) {
  const int64_t groups = s.between(1, 3);
  Ints sizes = batch_sizes(s, 2, 1, 3, false);
  sizes[1] *= groups;
  return {like(s, sizes, nearly(s, s.floating())), groups};
}

Stack ctc_loss_backward(Sampler& s) {
  const auto dtype = s.one_of({at::kFloat, at::kDouble});
  const int64_t batch = s.between(1, 2);
  return {s.tensor(Ints{batch}, dtype),
          s.tensor(Ints{3, batch, 4}, dtype),
          s.indices(Ints{batch, 2}).contiguous().fill_(1),
          Ints(static_cast<size_t>(batch), 3),
          Ints(static_cast<size_t>(batch), 2),
          s.tensor(Ints{batch}, dtype),
          s.tensor(Ints{batch, 3, 5}, dtype),
          int64_t{0},
          false};
}

Stack dot(Sampler& s) {
  const Ints sizes{s.between(0, 4)};
  const auto dtype = s.any_dtype();
  return {s.tensor(sizes, dtype), like(s, sizes, dtype)};
}

Stack matrix_vector(Sampler& s) {
  const Ints sizes{s.between(0, 4), s.between(0, 4)};
  const auto dtype = s.any_dtype();
  return {s.tensor(sizes, dtype), like(s, Ints{sizes[1]}, dtype)};
}

Stack matrix_product(Sampler& s) {
  const Ints sizes{s.between(1, 4), s.between(1, 4)};
  const auto dtype = s.any_dtype();
  return {s.tensor(sizes, dtype), like(s, Ints{sizes[1], s.between(1, 4)}, dtype)};
}

Stack batched_product(Sampler& s) {
  const int64_t batch = s.between(1, 3);
  const Ints sizes{s.between(1, 4), s.between(1, 4)};
  const auto dtype = s.any_dtype();
  return {s.tensor(Ints{batch, sizes[0], sizes[1]}, dtype),
          like(s, Ints{batch, sizes[1], s.between(1, 4)}, dtype)};
}

/// `self` is added to a product.
Draw added_to(const std::function<Stack(Sampler&)>& product, bool sums_batch) {
  return [=](Sampler& s) -> Stack {
    Stack stack = product(s);
    const at::Tensor& a = stack[0].toTensor();
    const at::Tensor& b = stack[1].toTensor();
    Ints sizes = a.sizes().vec();
    sizes.back() = b.size(-1);
    if (b.dim() == 1) sizes.pop_back();
    if (sums_batch) sizes.erase(sizes.begin());
    if (s.one_in(3) && sizes.size() > 1) sizes.erase(sizes.begin());
    stack.insert(stack.begin(), s.tensor(sizes, nearly(s, a.scalar_type())));
    stack.emplace_back(int64_t{1});
    stack.emplace_back(int64_t{1});
    return stack;
  };
}

Stack trace(Sampler& s) { return {like(s, Ints{s.between(0, 3), s.between(1, 3)}, s.floating())}; }

/// The sizes to which an image is brought, and nothing else that matters.
Draw resampled(size_t spatial, bool is_backward, bool has_corners, size_t scales) {
  return [=](Sampler& s) -> Stack {
    const auto dtype = nearly(s, s.floating());
    const Ints sizes = batch_sizes(s, spatial, 1, 4, false);
    const Ints target = repeated(s, spatial, 1, 6);
    Stack stack{s.tensor(is_backward ? with_last(sizes, target) : sizes, dtype), target};
    if (is_backward) stack.emplace_back(sizes);
    if (has_corners) stack.emplace_back(s.one_in(2));
    for (size_t i = 0; i < scales; ++i) stack.emplace_back();
    return stack;
  };
}

const std::map<std::string, Draw>& entries() {
  static const std::map<std::string, Draw> all = {
      {"aten::_adaptive_avg_pool2d", adaptive(2, false)},
      {"aten::_adaptive_avg_pool2d_backward", adaptive(2, true)},
      {"aten::_adaptive_avg_pool3d", adaptive(3, false)},
      {"aten::_adaptive_avg_pool3d_backward", adaptive(3, true)},
      {"aten::_cdist_backward", distances(true)},
      {"aten::_cdist_forward", distances(false)},
      {"aten::_cholesky_solve_helper", cholesky_solve},
      {"aten::_ctc_loss_backward", ctc_loss_backward},
      {"aten::_native_batch_norm_legit_functional", batch_norm(false, true)},
      {"aten::_native_batch_norm_legit.no_stats", batch_norm_but({4, 3})},
      {"aten::_native_batch_norm_legit_no_training", batch_norm_but({5})},
      {"aten::_pdist_backward", pair_distances(true)},
      {"aten::_pdist_forward", pair_distances(false)},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", attention(false)},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention(true)},
      {"aten::_weight_norm_interface", weight_norm(false)},
      {"aten::_weight_norm_interface_backward", weight_norm(true)},
      {"aten::addbmm", added_to(batched_product, true)},
      {"aten::addmm", added_to(matrix_product, false)},
      {"aten::addmv", added_to(matrix_vector, false)},
      {"aten::avg_pool2d", average_pool(2, false)},
      {"aten::avg_pool2d_backward", average_pool(2, true)},
      {"aten::avg_pool3d", average_pool(3, false)},
      {"aten::avg_pool3d_backward", average_pool(3, true)},
      {"aten::baddbmm", added_to(batched_product, false)},
      {"aten::binary_cross_entropy", cross_entropy(false)},
      {"aten::binary_cross_entropy_backward", cross_entropy(true)},
      {"aten::bmm", batched_product},
      {"aten::bucketize.Tensor", bucketize},
      {"aten::channel_shuffle", channels},
      {"aten::cholesky_inverse", cholesky_inverse},
      {"aten::cholesky_solve", cholesky_solve},
      {"aten::col2im", columns(true)},
      {"aten::convolution", convolution(false)},
      {"aten::convolution_backward", convolution(true)},
      {"aten::dot", dot},
      {"aten::embedding", embedding},
      {"aten::embedding_dense_backward", embedding_dense_backward},
      {"aten::glu_backward", glu_backward},
      {"aten::grid_sampler_2d", grid(2, false)},
      {"aten::grid_sampler_2d_backward", grid(2, true)},
      {"aten::grid_sampler_3d", grid(3, false)},
      {"aten::grid_sampler_3d_backward", grid(3, true)},
      {"aten::huber_loss", huber_loss},
      {"aten::im2col", columns(false)},
      {"aten::index_select", index_select},
      {"aten::masked_scatter_backward", masked_scatter_backward},
      {"aten::max_pool2d_with_indices", max_pool(2, false)},
      {"aten::max_pool2d_with_indices_backward", max_pool(2, true)},
      {"aten::max_pool3d_with_indices", max_pool(3, false)},
      {"aten::max_pool3d_with_indices_backward", max_pool(3, true)},
      {"aten::mm", matrix_product},
      {"aten::mse_loss_backward", mse_loss_backward},
      {"aten::multi_margin_loss", margin_loss(false, false)},
      {"aten::multi_margin_loss_backward", margin_loss(false, true)},
      {"aten::multilabel_margin_loss_backward", margin_loss(true, true)},
      {"aten::multilabel_margin_loss_forward", margin_loss(true, false)},
      {"aten::multinomial", multinomial},
      {"aten::mv", matrix_vector},
      {"aten::native_batch_norm", batch_norm(false, false)},
      {"aten::native_batch_norm_backward", batch_norm(true, false)},
      {"aten::native_channel_shuffle", channels},
      {"aten::native_group_norm", group_norm(false)},
      {"aten::native_group_norm_backward", group_norm(true)},
      {"aten::native_layer_norm", layer_norm},
      {"aten::native_layer_norm_backward", layer_norm_backward},
      {"aten::nll_loss2d_backward", nll_loss2d(true)},
      {"aten::nll_loss2d_forward", nll_loss2d(false)},
      {"aten::pixel_shuffle", pixels(false)},
      {"aten::pixel_unshuffle", pixels(true)},
      {"aten::reflection_pad1d", padded(1, false)},
      {"aten::reflection_pad1d_backward", padded(1, true)},
      {"aten::reflection_pad2d", padded(2, false)},
      {"aten::reflection_pad2d_backward", padded(2, true)},
      {"aten::reflection_pad3d", padded(3, false)},
      {"aten::reflection_pad3d_backward", padded(3, true)},
      {"aten::repeat_interleave.Tensor", repeat_interleave},
      {"aten::replication_pad1d", padded(1, false)},
      {"aten::replication_pad1d_backward", padded(1, true)},
      {"aten::replication_pad2d", padded(2, false)},
      {"aten::replication_pad2d_backward", padded(2, true)},
      {"aten::replication_pad3d", padded(3, false)},
      {"aten::replication_pad3d_backward", padded(3, true)},
      {"aten::roll", roll},
      {"aten::searchsorted.Tensor", searchsorted},
      {"aten::trace", trace},
      {"aten::unfold_backward", unfold_backward},
      {"aten::upsample_bicubic2d", resampled(2, false, true, 2)},
      {"aten::upsample_bicubic2d_backward", resampled(2, true, true, 2)},
      {"aten::upsample_bilinear2d", resampled(2, false, true, 2)},
      {"aten::upsample_bilinear2d_backward", resampled(2, true, true, 2)},
      {"aten::upsample_linear1d", resampled(1, false, true, 1)},
      {"aten::upsample_linear1d_backward", resampled(1, true, true, 1)},
      {"aten::upsample_nearest1d", resampled(1, false, false, 1)},
      {"aten::upsample_nearest1d_backward", resampled(1, true, false, 1)},
      {"aten::upsample_nearest2d", resampled(2, false, false, 2)},
      {"aten::upsample_nearest2d_backward", resampled(2, true, false, 2)},
      {"aten::upsample_nearest3d", resampled(3, false, false, 3)},
      {"aten::upsample_nearest3d_backward", resampled(3, true, false, 3)},
      {"aten::upsample_trilinear3d", resampled(3, false, true, 3)},
      {"aten::upsample_trilinear3d_backward", resampled(3, true, true, 3)},
      {"aten::vdot", dot},
  };
  return all;
}

}  // namespace

std::optional<torch::jit::Stack> draw_arguments(const c10::OperatorHandle& op, Sampler& sampler) {
  const auto entry = entries().find(c10::toString(op.operator_name()));
  if (entry != entries().end()) return entry->second(sampler);
  return draw_arguments(op.schema(), sampler);
}

}  // namespace foregrad::testing
