// Function transforms: batching, derivatives of either mode, functionalization. They nest
// in any order, and work on what `compile` makes and inside of what it compiles:
//
//   auto hessians = foregrad::compile(foregrad::vmap(foregrad::hessian(energy)));
//
// (Jacobians and Hessians: `foregrad/jacobian.h`.)
//
// Functions take and return tensors, optionals, numbers, vectors, tuples, maps and structs with
// `members()`. Each transform returns a callable that shares the function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "foregrad/detail/flat_call.h"

namespace foregrad {

struct VmapOptions {
  /// The dimension of the batch in the tensors of each argument; nothing: not batched. Empty: the
  /// first of all.
  std::vector<std::optional<std::int64_t>> in_dims{};
  std::int64_t out_dim = 0;  // in the tensors of the result
  Randomness randomness = Randomness::Error;
  std::int64_t chunk_size = 0;  // how many elements of the batch go together; 0: all
};

/// Calls a function for each element of a batch, all at once: `fn` sees tensors without the
/// dimension of the batch. Throws `c10::Error` for batches of several sizes, and naming the
/// operator for what can't be batched.
template <class Fn>
auto vmap(Fn&& fn, const VmapOptions& options = {}) {
  using F = std::decay_t<Fn>;
  return [shared = std::make_shared<F>(std::forward<Fn>(fn)),
          options]<class... Args>(const Args&... args) {
    TORCH_CHECK(options.in_dims.empty() || options.in_dims.size() == sizeof...(Args),
                "foregrad: `vmap`: expected `in_dims` for each of ", sizeof...(Args),
                " arguments, got ", options.in_dims.size(), ".");
    auto dims = options.in_dims;
    if (dims.empty()) dims.assign(sizeof...(Args), 0);
    detail::FlatCall<F, const Args...> call(*shared, args...);
    return call.result(detail::vmap(call.function(), call.inputs(),
                                    {.in_dims = call.for_each_tensor(dims),
                                     .out_dim = options.out_dim,
                                     .randomness = options.randomness,
                                     .chunk_size = options.chunk_size}));
  };
}

/// Makes a function that gives a pair: the gradients of the result's first tensor, one number, with
/// respect to the arguments `I` (a tuple if there are several, the first argument if none is
/// named), and the result. Gradients stand where the tensors stood in the argument; of integers
/// they are undefined. Throws `c10::Error` if there isn't one number.
template <std::size_t... I, class Fn>
auto grad_and_value(Fn&& fn) {
  if constexpr (sizeof...(I) == 0) {
    return grad_and_value<0>(std::forward<Fn>(fn));
  } else {
    using F = std::decay_t<Fn>;
    return [shared =
                std::make_shared<F>(std::forward<Fn>(fn))]<class... Args>(const Args&... args) {
      detail::FlatCall<F, const Args...> call(*shared, args...);
      auto [results, gradients] =
          detail::grad(call.function(), call.inputs(), call.template wanted<I...>());
      return std::pair(call.template arguments<I...>(gradients), call.result(std::move(results)));
    };
  }
}

/// The gradients alone.
template <std::size_t... I, class Fn>
auto grad(Fn&& fn) {
  return [inner = grad_and_value<I...>(std::forward<Fn>(fn))](const auto&... args) {
    return inner(args...).first;
  };
}

/// Calls a function and returns a pair: the result, and a function from gradients of the result (a
/// value like it) to those of the arguments: of the only one, or a tuple. May be called again.
template <class Fn, class... Args>
auto vjp(Fn&& fn, const Args&... args) {
  using F = std::remove_reference_t<Fn>;
  using Call = detail::FlatCall<F, const Args...>;
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    Call call(fn, args...);
    auto pulled = detail::vjp(call.function(), call.inputs(), call.template wanted<I...>());
    auto pull_back = [pull = std::move(pulled.pull_back),
                      kept = std::tuple<Args...>(args...)](const typename Call::Result& gradients) {
      detail::Tensors tensors;
      collect_tensors(gradients, tensors);
      const detail::Tensors of_all = pull(tensors);
      if constexpr (sizeof...(I) == 1) {
        return detail::with_tensors(std::get<0>(kept), of_all);
      } else {
        return detail::with_tensors(kept, of_all);
      }
    };
    return std::pair(call.result(std::move(pulled.results)), std::move(pull_back));
  }
  (std::index_sequence_for<Args...>());
}

/// Calls a function with `arguments` and returns a pair: the result, and how it changes as the
/// arguments change by `tangents`, a tuple like that of the arguments; an undefined tangent is
/// zero.
template <class Fn, class... Args>
auto jvp(Fn&& fn, const std::tuple<Args...>& arguments, const std::tuple<Args...>& tangents) {
  return std::apply(
      [&](const Args&... args) {
        detail::FlatCall<std::remove_reference_t<Fn>, const Args...> call(fn, args...);
        detail::Tensors of_arguments;
        collect_tensors(tangents, of_arguments);
        auto [results, changes] = detail::jvp(call.function(), call.inputs(), of_arguments);
        auto result = call.result(std::move(results));
        return std::pair(std::move(result), call.result(std::move(changes)));
      },
      arguments);
}

/// Makes a function that calls `fn` with views and writes replaced by functional operators; what it
/// writes to its arguments is written when it returns.
template <class Fn>
auto functionalize(Fn&& fn) {
  using F = std::decay_t<Fn>;
  return [shared = std::make_shared<F>(std::forward<Fn>(fn))]<class... Args>(const Args&... args) {
    detail::FlatCall<F, const Args...> call(*shared, args...);
    return call.result(detail::functionalize(call.function(), call.inputs()));
  };
}

}  // namespace foregrad
