// A function with the arguments of one call, as a function from tensors to tensors. Not for direct
// use.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "foregrad/detail/bound_call.h"
#include "foregrad/detail/flat_transforms.h"
#include "foregrad/tree.h"

namespace foregrad::detail {

/// A function bound to the arguments of one call.
template <class Fn, class... Args>
class FlatCall {
 public:
  using Result = std::decay_t<std::invoke_result_t<Fn&, Args&...>>;
  static_assert(Tree<Result> && (Tree<Args> && ...),
                "foregrad: an argument or the result is of a type that can't be walked for "
                "tensors. Add `auto members() { return std::tie(a, b); }` to your struct.");

  explicit FlatCall(Fn& fn, Args&... args)
      : arguments_(args...), bound_(fn, std::tuple<Args&...>(args...)) {
    (collect_tensors(args, inputs_), ...);
  }

  const Tensors& inputs() const { return inputs_; }
  FlatFunction function() {
    return [this](const Tensors& tensors) {
      TracedResult traced = bound_.trace(tensors);
      TORCH_CHECK(!traced.reassigns_argument,
                  "foregrad: a transformed function gives an argument another value. Expected "
                  "results to be returned, and tensors to be written in place.");
      prototype_ = std::move(traced.prototype);
      return std::move(traced.tensors);
    };
  }
  /// The result of the last run, with these tensors.
  Result result(Tensors tensors) const {
    return with_tensors(*static_cast<const Result*>(prototype_.get()), std::move(tensors));
  }

  /// One value for each tensor of an argument, from one for each argument.
  template <class T>
  std::vector<T> for_each_tensor(const std::vector<T>& of_argument) const {
    std::vector<T> of_tensor;
    std::size_t i = 0;
    std::apply(
        [&](const Args&... argument) {
          (of_tensor.insert(of_tensor.end(), count_tensors(argument), of_argument[i++]), ...);
        },
        arguments_);
    return of_tensor;
  }
  /// Which tensors can be differentiated and are in arguments `I`.
  template <std::size_t... I>
  std::vector<bool> wanted() const {
    std::vector<bool> is_named(sizeof...(Args));
    ((is_named[I] = true), ...);
    std::vector<bool> is_wanted = for_each_tensor(is_named);
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      is_wanted[i] = is_wanted[i] && is_differentiable(inputs_[i]);
    return is_wanted;
  }
  /// Argument `I` with other tensors, taken from those of all arguments.
  template <std::size_t I>
  auto argument(const Tensors& of_all) const {
    const auto& argument = std::get<I>(arguments_);
    std::size_t begin = 0;
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      ((begin += count_tensors(std::get<K>(arguments_))), ...);
    }
    (std::make_index_sequence<I>());
    const auto first = of_all.begin() + static_cast<std::ptrdiff_t>(begin);
    return with_tensors(std::decay_t<decltype(argument)>(argument),
                        {first, first + static_cast<std::ptrdiff_t>(count_tensors(argument))});
  }
  /// The one argument named, or a tuple of several.
  template <std::size_t... I>
  auto arguments(const Tensors& of_all) const {
    if constexpr (sizeof...(I) == 1) {
      return argument<I...>(of_all);
    } else {
      return std::make_tuple(argument<I>(of_all)...);
    }
  }

 private:
  std::tuple<const Args&...> arguments_;
  BoundCall<Fn, Args&...> bound_;
  Tensors inputs_;
  std::shared_ptr<const void> prototype_;
};

}  // namespace foregrad::detail
