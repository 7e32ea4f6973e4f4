// Draws tensors and arguments of operators at random, in the layouts that programs make.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace foregrad::testing {

class Sampler {
 public:
  explicit Sampler(uint64_t seed) : engine_(seed) {}

  /// Returns a number from `low` to `high`, both included.
  int64_t between(int64_t low, int64_t high);
  bool one_in(int64_t count) { return between(1, count) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<int64_t>(choices.size()) - 1)];
  }

  /// Returns sizes from 1 to 4; seldom one of them is 0.
  std::vector<int64_t> sizes(int64_t min_dim, int64_t max_dim);
  at::ScalarType floating();
  at::ScalarType any_dtype();

  /// Returns a tensor of halves (ones, if it holds integers) in some layout: contiguous, permuted,
  /// channels last, with gaps, expanded, or with strides that sizes of one leave open.
  at::Tensor tensor(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat);
  /// Returns zeros, which are valid as indices, in some layout.
  at::Tensor indices(at::IntArrayRef sizes, at::ScalarType dtype = at::kLong);

  /// Returns the tensor that libtorch makes of a C++ number.
  at::Tensor number();

 private:
  at::Tensor in_some_layout(at::IntArrayRef sizes, at::ScalarType dtype);
  std::vector<int64_t> order(size_t dims);

  std::mt19937_64 engine_;
};

/// Draws arguments that the schema allows: tensors of one shape or such that broadcast to it, of
/// one dtype mostly; numbers by the names of the arguments. Many are invalid. Returns nothing if
/// the schema has an argument of another kind.
std::optional<torch::jit::Stack> draw_arguments(const c10::FunctionSchema& schema,
                                                Sampler& sampler);

}  // namespace foregrad::testing
