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

/// Returns the value with these as its tensor leaves, in order.
template <class T>
T with_tensors(T result, std::vector<at::Tensor> tensors) {
  std::size_t next = 0;
  visit_leaves(result, [&]<class Leaf>(Leaf& leaf) {
    if constexpr (std::same_as<Leaf, at::Tensor>) leaf = std::move(tensors[next++]);
  });
  return result;
}

template <class Fn, class... Args>
class BoundCall final : public BoundFunction {
 public:
  using Result = std::invoke_result_t<Fn&, Args...>;

  BoundCall(Fn& fn, std::tuple<Args...> arguments) : fn_(fn), arguments_(std::move(arguments)) {}

  TracedResult trace(const std::vector<at::Tensor>& tensors) override {
    auto copies = with_tensors(
        std::apply(
            [](const auto&... argument) { return std::tuple<std::decay_t<Args>...>(argument...); },
            arguments_),
        tensors);
    Leaves before;
    visit_leaves(std::as_const(copies), before);
    TracedResult traced = apply(copies, std::index_sequence_for<Args...>{});
    traced.reassigns_argument =
        reassigns(copies, tensors, before, std::index_sequence_for<Args...>{});
    return traced;
  }

 private:
  template <class Copies, std::size_t... I>
  static bool reassigns(const Copies& copies, const std::vector<at::Tensor>& tensors,
                        const Leaves& before, std::index_sequence<I...>) {
    // Only what the caller would see: arguments bound to references that are not const.
    constexpr bool kVisible[] = {
        (std::is_lvalue_reference_v<Args> && !std::is_const_v<std::remove_reference_t<Args>>)...,
        false};
    std::size_t tensor = 0;
    std::size_t plain = 0;
    bool changed = false;
    const auto compare = [&](const auto& argument, bool is_visible) {
      Leaves after;
      visit_leaves(argument, after);
      for (const at::Tensor* now : after.tensors) {
        changed |= is_visible && (tensor >= tensors.size() || !now->is_same(tensors[tensor]));
        ++tensor;
      }
      for (const PlainLeaf& now : after.plain) {
        changed |= is_visible && (plain >= before.plain.size() || !(now == before.plain[plain]));
        ++plain;
      }
    };
    (compare(std::get<I>(copies), kVisible[I]), ...);
    return changed;
  }

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
