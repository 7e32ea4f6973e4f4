// Which types `foregrad/tree.h` can walk, and what each consists of. Not for direct use.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace foregrad::detail {

enum class Shape {
  Unsupported,
  Tensor,
  Plain,
  Optional,
  Array,
  Vector,
  Product,
  Map,
  HashMap,
  Struct
};

template <class... Ts>
struct Types {};

template <Shape S, class... Ts>
struct Node {
  static constexpr Shape kShape = S;
  using Parts = Types<Ts...>;
};

template <class Result>
struct MemberList : Node<Shape::Unsupported> {};
template <class... Ms>
struct MemberList<std::tuple<Ms&...>> : Node<Shape::Struct, Ms...> {};

template <class T>
concept Ordered = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string>;
template <class T>
concept Plain = std::same_as<T, std::remove_cv_t<T>> &&(Ordered<T> || std::same_as<T, c10::Scalar>);
template <class T>
concept HasMembers = std::same_as<T, std::remove_cvref_t<T>> && requires(T& value) {
  value.members();
};

/// How one type is walked. What is const or a reference cannot be assigned, so it's unsupported.
template <class T>
struct NodeOf : Node<Shape::Unsupported> {};
template <>
struct NodeOf<at::Tensor> : Node<Shape::Tensor> {};
template <Plain T>
struct NodeOf<T> : Node<Shape::Plain> {};
template <class T>
struct NodeOf<std::optional<T>> : Node<Shape::Optional, T> {};
template <class T, std::size_t N>
struct NodeOf<std::array<T, N>> : Node<Shape::Array, T> {};
template <class T, class A>
struct NodeOf<std::vector<T, A>> : Node<Shape::Vector, T> {};
template <class T, class U>
struct NodeOf<std::pair<T, U>> : Node<Shape::Product, T, U> {};
template <class... Ts>
struct NodeOf<std::tuple<Ts...>> : Node<Shape::Product, Ts...> {};
template <Ordered K, class V, class C, class A>
struct NodeOf<std::map<K, V, C, A>> : Node<Shape::Map, V> {};
template <Ordered K, class V, class H, class E, class A>
struct NodeOf<std::unordered_map<K, V, H, E, A>> : Node<Shape::HashMap, V> {};
template <HasMembers T>
struct NodeOf<T> : MemberList<decltype(std::declval<T&>().members())> {};

/// A type inside itself (a struct with a vector of its own kind) is supported if all else in it is.
template <class T, class... Enclosing>
consteval bool is_tree() {
  if constexpr (NodeOf<T>::kShape == Shape::Unsupported) {
    return false;
  } else if constexpr ((std::same_as<T, Enclosing> || ...)) {
    return true;
  } else {
    return []<class... Parts>(Types<Parts...>) {
      return (is_tree<Parts, T, Enclosing...>() && ...);
    }(typename NodeOf<T>::Parts{});
  }
}

}  // namespace foregrad::detail
