// Jacobians and second derivatives of functions: transforms, as those of `foregrad/transforms.h`.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "foregrad/detail/flat_call.h"

namespace foregrad {

namespace detail {

template <std::size_t I, auto jacobians, class Fn>
auto jacobian(Fn&& fn) {
  using F = std::decay_t<Fn>;
  return [shared = std::make_shared<F>(std::forward<Fn>(fn))]<class... Args>(const Args&... args) {
    using Call = FlatCall<F, const Args...>;
    Call call(*shared, args...);
    const auto of_results = jacobians(call.function(), call.inputs(), call.template wanted<I>());
    using Argument = decltype(call.template argument<I>(call.inputs()));
    std::vector<Argument> all;
    for (const Tensors& of_inputs : of_results) all.push_back(call.template argument<I>(of_inputs));
    if constexpr (std::same_as<typename Call::Result, at::Tensor>) {
      return all.at(0);
    } else if constexpr (std::same_as<Argument, at::Tensor>) {
      return call.result(std::move(all));
    } else {
      return all;
    }
  };
}

}  // namespace detail

/// Makes a function that gives the Jacobian with respect to argument `I`, by backward: a tensor of
/// sizes [result..., argument...]. Where one of the two is a tensor and the other holds several,
/// the Jacobians stand where those stood; where both do, a vector with such a value for each tensor
/// of the result.
template <std::size_t I = 0, class Fn>
auto jacrev(Fn&& fn) {
  return detail::jacobian<I, detail::jacobians_reverse>(std::forward<Fn>(fn));
}

/// The same by forward mode: better for more results than arguments.
template <std::size_t I = 0, class Fn>
auto jacfwd(Fn&& fn) {
  return detail::jacobian<I, detail::jacobians_forward>(std::forward<Fn>(fn));
}

/// Makes a function that gives second derivatives with respect to argument `I`: for a tensor a
/// tensor of sizes [result..., argument..., argument...].
template <std::size_t I = 0, class Fn>
auto hessian(Fn&& fn) {
  return jacfwd<I>(jacrev<I>(std::forward<Fn>(fn)));
}

}  // namespace foregrad
