// The user's function with the arguments of one call, as the library sees it. Not for direct use.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "foregrad/detail/callable.h"
#include "foregrad/tree.h"

namespace foregrad::detail {

template <class Fn, class... Args>
class BoundCall final : public BoundFunction {
 public:
  using Result = std::invoke_result_t<Fn&, Args...>;

  BoundCall(Fn& fn, std::tuple<Args...> arguments) : fn_(fn), arguments_(std::move(arguments)) {}

  TracedResult trace(const std::vector<at::Tensor>& tensors) override {
    auto copies = std::apply(
        [](const auto&... argument) { return std::tuple<std::decay_t<Args>...>(argument...); },
        arguments_);
    std::size_t next = 0;
    visit_leaves(copies, [&]<class Leaf>(Leaf& leaf) {
      if constexpr (std::same_as<Leaf, at::Tensor>) leaf = tensors[next++];
    });
    return apply(copies, std::index_sequence_for<Args...>{});
  }

 private:
  template <class Copies, std::size_t... I>
  TracedResult apply(Copies& copies, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<Result>) {
      fn_(static_cast<Args>(std::get<I>(copies))...);
      return {};
    } else {
      auto result =
          std::make_shared<std::decay_t<Result>>(fn_(static_cast<Args>(std::get<I>(copies))...));
      TracedResult traced;
      visit_leaves(*result, [&]<class Leaf>(Leaf& leaf) {
        if constexpr (std::same_as<Leaf, at::Tensor>)
          traced.tensors.push_back(std::exchange(leaf, at::Tensor()));
      });
      traced.prototype = std::move(result);
      return traced;
    }
  }

  Fn& fn_;
  std::tuple<Args...> arguments_;
};

}  // namespace foregrad::detail
