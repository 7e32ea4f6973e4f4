// The walk over what a function takes and returns: nested containers and structs as a flat sequence
// of leaves.
//
// A leaf is a tensor or a plain value (number, enum, string, `c10::Scalar`). Whether an optional
// holds a value (`bool`) and how long a vector or map is (`std::size_t`) are plain leaves too,
// visited before the contents. So two values of one type with equal plain leaves have the same
// structure: a guard need only compare those. The order depends on the value alone, never on
// addresses or hashes.
//
// A result is rebuilt by copying a prototype and assigning the copy's tensor leaves in order; no
// type needs a default constructor.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "foregrad/detail/tree_node.h"

namespace foregrad {

/// Says whether `visit_leaves` can walk a `T`.
template <class T>
concept Tree = detail::is_tree<std::remove_cvref_t<T>>();

namespace detail {

/// `T` is the type as declared; `Value` is `T`, or `const T` in a walk over something const.
template <class T, class Value, class Visitor>
void walk(Value& value, Visitor& visitor) {
  constexpr Shape kShape = NodeOf<T>::kShape;
  static_assert(
      kShape != Shape::Unsupported,
      "foregrad: `T` of this `walk` cannot be part of an argument or result. If it is your "
      "struct, add `auto members() { return std::tie(a, b); }` (not const) with all its "
      "members. Map keys are numbers, enums or strings; nothing is const or a reference.");
  if constexpr (kShape == Shape::Vector || kShape == Shape::Map || kShape == Shape::HashMap) {
    const std::size_t size = value.size();
    visitor(size);
  }
  if constexpr (kShape == Shape::Tensor) {
    visitor(value);
  } else if constexpr (kShape == Shape::Plain) {
    visitor(std::as_const(value));
  } else if constexpr (kShape == Shape::Optional) {
    const bool has_value = value.has_value();
    visitor(has_value);
    if (has_value) walk<typename T::value_type>(*value, visitor);
  } else if constexpr (kShape == Shape::Array || kShape == Shape::Vector) {
    using E = typename T::value_type;
    // The elements of `std::vector<bool>` are no references.
    using Element = std::conditional_t<std::same_as<E, bool>, const bool, decltype(*value.begin())>;
    for (Element element : value) walk<E>(element, visitor);
  } else if constexpr (kShape == Shape::Product) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (walk<std::tuple_element_t<I, T>>(std::get<I>(value), visitor), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (kShape == Shape::Map) {
    for (auto& [key, mapped] : value) {
      visitor(key);
      walk<typename T::mapped_type>(mapped, visitor);
    }
  } else if constexpr (kShape == Shape::HashMap) {
    std::vector<decltype(&*value.begin())> entries;
    for (auto& entry : value) entries.push_back(&entry);
    std::sort(entries.begin(), entries.end(), [](const auto* left, const auto* right) {
      return std::strong_order(left->first, right->first) < 0;
    });
    for (auto* entry : entries) {
      visitor(entry->first);
      walk<typename T::mapped_type>(entry->second, visitor);
    }
  } else if constexpr (kShape == Shape::Struct) {
    // `members()` only lists: nothing is written through it in a walk over something const.
    std::apply(
        [&]<class... Ms>(Ms&... members) {
          using Constness = std::is_const<Value>;
          (walk<Ms, std::conditional_t<Constness::value, const Ms, Ms>>(members, visitor), ...);
        },
        const_cast<T&>(value).members());
  }
}

}  // namespace detail

/// Calls `visitor` for each leaf, in order: `at::Tensor&` (const in a const value) or `const V&`
/// for a plain `V`. A struct lists every member, those of its bases too, by `members()`. A
/// `std::unordered_map` is walked by sorted keys.
template <class T, class Visitor>
void visit_leaves(T& value, Visitor&& visitor) {
  detail::walk<std::remove_const_t<T>>(value, visitor);
}

/// Appends the tensor leaves, undefined ones included, to `tensors` by `push_back`.
template <class T, class Container>
void collect_tensors(const T& value, Container& tensors) {
  visit_leaves(value, [&]<class Leaf>(const Leaf& leaf) {
    if constexpr (std::same_as<Leaf, at::Tensor>) tensors.push_back(leaf);
  });
}

/// Counts the tensor leaves, undefined ones included.
template <class T>
std::size_t count_tensors(const T& value) {
  std::size_t count = 0;
  visit_leaves(value, [&]<class Leaf>(const Leaf&) { count += std::same_as<Leaf, at::Tensor>; });
  return count;
}

}  // namespace foregrad
