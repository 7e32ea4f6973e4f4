// The boundary between the templates of `foregrad/compile.h` and the library: one call with its
// types erased. Not for direct use.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/SmallVector.h>

#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "foregrad/options.h"
#include "foregrad/report.h"

namespace foregrad::detail {

/// A plain leaf of the arguments, or a piece of one: guarded by value.
struct PlainLeaf {
  enum class Kind : std::uint8_t { Bool, Integer, Float, Text, Complex } kind;
  std::uint64_t bits;
  bool operator==(const PlainLeaf&) const = default;
};

/// The leaves of one call's arguments. The tensors belong to the caller.
struct Leaves {
  c10::SmallVector<const at::Tensor*, 8> tensors;
  c10::SmallVector<PlainLeaf, 8> plain;

  void operator()(const at::Tensor& tensor) { tensors.push_back(&tensor); }
  template <class V>
  requires std::is_arithmetic_v<V>
  void operator()(const V& value) {
    if constexpr (std::same_as<V, bool>) {
      plain.push_back({PlainLeaf::Kind::Bool, value});
    } else if constexpr (std::is_floating_point_v<V>) {
      plain.push_back(
          {PlainLeaf::Kind::Float, std::bit_cast<std::uint64_t>(static_cast<double>(value))});
    } else {
      plain.push_back({PlainLeaf::Kind::Integer, static_cast<std::uint64_t>(value)});
    }
  }
  template <class V>
  requires std::is_enum_v<V>
  void operator()(const V& value) { (*this)(static_cast<std::underlying_type_t<V>>(value)); }
  void operator()(const std::string& text) {
    (*this)(text.size());
    for (char c : text) plain.push_back({PlainLeaf::Kind::Text, static_cast<unsigned char>(c)});
  }
  void operator()(const c10::Scalar& scalar) {
    (*this)(scalar.type());
    const auto value = scalar.toComplexDouble();
    plain.push_back({PlainLeaf::Kind::Complex, std::bit_cast<std::uint64_t>(value.real())});
    plain.push_back({PlainLeaf::Kind::Complex, std::bit_cast<std::uint64_t>(value.imag())});
    if (scalar.isIntegral(false)) {
      (*this)(scalar.type() == at::kUInt64 ? scalar.toUInt64()
                                           : static_cast<std::uint64_t>(scalar.toLong()));
    }
  }
};

/// What the user's function returned while it was traced.
struct TracedResult {
  std::vector<at::Tensor> tensors;          // its tensor leaves, in order
  std::shared_ptr<const void> prototype{};  // the result with its tensors taken out
  /// The function gave another value to an argument that it takes by reference.
  bool reassigns_argument = false;
};

/// The user's function with the arguments of one call.
class BoundFunction {
 public:
  virtual ~BoundFunction() = default;
  /// Runs the function on copies of the arguments, their tensors replaced.
  virtual TracedResult trace(const std::vector<at::Tensor>& tensors) = 0;
};

struct CallResult {
  bool is_compiled = false;  // if not, the caller runs the function eagerly
  /// Not compiled since tracing threw this; if eager throws too it was the user's error, else it
  /// counts as a fall-back.
  std::string trace_error{};
  std::vector<at::Tensor> tensors{};
  std::shared_ptr<const void> prototype{};
};

class Driver;

/// Holds the specialisations of one function. Copies share them.
class Compiler {
 public:
  explicit Compiler(CompileOptions options);
  CallResult call(const Leaves& leaves, BoundFunction& function) const;
  /// Compiles without calling; says whether calls like this one will be compiled.
  bool warm_up(const Leaves& leaves, BoundFunction& function) const;
  /// Counts a call that eager ran although tracing failed; calls like it are not traced again.
  void count_fallback(const std::string& trace_error, const Leaves& leaves) const;
  Report report() const;
  void invalidate() const;

 private:
  std::shared_ptr<Driver> driver_;
};

}  // namespace foregrad::detail
