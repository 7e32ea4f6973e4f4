// The operations that random programs consist of.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/fuzz/random.h"

namespace foregrad::cli::fuzz {

using Tensors = std::vector<at::Tensor>;

/// What an operation is given beside tensors: dimensions, indices, numbers of quarters.
struct Parameters {
  std::vector<int64_t> numbers{};
  std::vector<int64_t> shape{};
  std::vector<int64_t> steps{};  // the strides of `as_strided`
  bool operator==(const Parameters&) const = default;
};

enum class Category : uint8_t {
  View,      // its result shares memory with its first operand
  Compute,   // its result is new, or the operand itself where nothing is to be done
  Factory,   // makes a tensor without reading one
  Random,    // draws from the default generator
  Write,     // writes its first operand in place
  Metadata,  // changes sizes, strides, storage or flags of its first operand in place
};

/// One row of the table.
struct Operation {
  /// Draws parameters that fit the first operand (undefined for a factory), or says that none do.
  using Pick = bool (*)(Random& random, const at::Tensor& operand, Parameters& parameters);
  using Apply = Tensors (*)(const Tensors& x, const Parameters& parameters);

  Category category;
  int weight;       // how often it is drawn, among its category
  size_t operands;  // how many tensors it takes
  Pick pick;
  /// The C++ expression that `apply` computes; `x[i]`, `n[i]`, `shape` and `steps` stand for
  /// operands and parameters.
  const char* expression;
  bool is_list;  // its result is a list of tensors
  Apply apply;
};

using Operations = std::vector<Operation>;

/// The rows, by subject.
const Operations& view_operations();
const Operations& compute_operations();
const Operations& write_operations();

/// All rows of one category.
const std::vector<const Operation*>& operations_of(Category category);

/// Returns the row with this expression. Throws `c10::Error` if there is none.
const Operation& operation(const std::string& expression);

/// Draws a row by weight.
const Operation& draw_operation(Random& random, Category category);

inline Tensors to_tensors(at::Tensor tensor) { return {std::move(tensor)}; }
inline Tensors to_tensors(Tensors tensors) { return tensors; }

/// Makes a row of a function that computes the expression. Written by `FOREGRAD_FUZZ_OPERATION`.
template <class Compute>
Operation make_operation(Category category, int weight, size_t operands, Operation::Pick pick,
                         const char* expression, Compute) {
  using Result =
      decltype(Compute{}(Tensors{}, std::vector<int64_t>{}, at::IntArrayRef(), at::IntArrayRef()));
  return {.category = category,
          .weight = weight,
          .operands = operands,
          .pick = pick,
          .expression = expression,
          .is_list = std::is_same_v<Result, Tensors>,
          .apply = [](const Tensors& x, const Parameters& parameters) {
            return to_tensors(Compute{}(x, parameters.numbers, parameters.shape, parameters.steps));
          }};
}

}  // namespace foregrad::cli::fuzz

/// A row whose text and code are one expression: what a failing program prints is what was run.
#define FOREGRAD_FUZZ_OPERATION(category, weight, operands, pick, ...)                      \
  make_operation(                                                                           \
      Category::category, weight, operands, pick, #__VA_ARGS__,                             \
      []([[maybe_unused]] const Tensors& x, [[maybe_unused]] const std::vector<int64_t>& n, \
         [[maybe_unused]] at::IntArrayRef shape,                                            \
         [[maybe_unused]] at::IntArrayRef steps) { return __VA_ARGS__; })
