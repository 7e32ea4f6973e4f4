// Operations that make new tensors.
#include <ATen/ATen.h>

#include "cli/fuzz/custom_functions.h"
#include "cli/fuzz/operation.h"
#include "cli/fuzz/picks.h"

#define COMPUTE(weight, operands, pick, ...) \
  FOREGRAD_FUZZ_OPERATION(Compute, weight, operands, pick, __VA_ARGS__)
#define FACTORY(pick, ...) FOREGRAD_FUZZ_OPERATION(Factory, 1, 0, pick, __VA_ARGS__)
#define RANDOM(operands, pick, ...) FOREGRAD_FUZZ_OPERATION(Random, 1, operands, pick, __VA_ARGS__)

namespace foregrad::cli::fuzz {

const Operations& compute_operations() {
  static const Operations kRows{
      COMPUTE(3, 2, pick_nothing, x[0] + x[1]),
      COMPUTE(3, 2, pick_nothing, x[0] * x[1]),
      COMPUTE(1, 2, pick_nothing, x[0] - x[1]),
      COMPUTE(1, 2, pick_nothing, at::maximum(x[0], x[1])),
      COMPUTE(2, 2, pick_nothing, at::where(x[0] == x[1], x[0], x[1])),
      COMPUTE(4, 2, pick_matrix, x[0].matmul(x[1])),
      COMPUTE(2, 2, pick_dim, at::cat({x[0], x[1]}, n[0])),
      COMPUTE(1, 2, pick_new_dim, at::stack({x[0], x[1]}, n[0])),
      COMPUTE(1, 1, pick_number, x[0] + n[0]),
      COMPUTE(2, 1, pick_number, x[0] * (n[0] / 4.0)),
      COMPUTE(1, 1, pick_one, x[0] * n[0]),
      COMPUTE(2, 1, pick_nothing, x[0].sin()),
      COMPUTE(1, 1, pick_nothing, x[0].exp()),
      COMPUTE(1, 1, pick_nothing, x[0].tanh()),
      COMPUTE(1, 1, pick_nothing, x[0].relu()),
      COMPUTE(1, 1, pick_nothing, x[0].square()),
      COMPUTE(1, 1, pick_nothing, x[0].neg()),
      COMPUTE(1, 1, pick_nothing, x[0].abs()),
      COMPUTE(1, 1, pick_two_numbers, x[0].clamp(n[0] / 4.0, n[1] / 4.0)),
      COMPUTE(1, 1, pick_number, x[0].masked_fill(x[0] == 0.5, n[0])),
      COMPUTE(2, 1, pick_nothing, x[0].sum()),
      COMPUTE(1, 1, pick_dim_list, x[0].sum(shape)),
      COMPUTE(1, 1, pick_nothing, x[0].mean()),
      COMPUTE(1, 1, pick_dim, x[0].cumsum(n[0])),
      COMPUTE(1, 1, pick_dim, x[0].softmax(n[0])),
      COMPUTE(1, 1, pick_dim_list, x[0].flip(shape)),
      COMPUTE(1, 1, pick_dim_and_number, x[0].index_select(n[0], at::arange(n[1]))),
      COMPUTE(3, 1, pick_nothing, x[0].clone()),
      COMPUTE(2, 1, pick_nothing, x[0].contiguous()),
      COMPUTE(2, 1, pick_type, x[0].to(at::ScalarType(n[0]))),
      COMPUTE(1, 1, pick_nothing, at::zeros_like(x[0])),
      COMPUTE(1, 1, pick_nothing, Reversed::apply(x[0])),
      COMPUTE(1, 1, pick_nothing, Itself::apply(x[0])),
      COMPUTE(1, 1, pick_nothing, SavedInput::apply(x[0])),
      COMPUTE(1, 1, pick_nothing, SavedOutput::apply(x[0])),
      COMPUTE(1, 2, pick_nothing, Pair::apply(x[0], x[1])),
      COMPUTE(1, 1, pick_nothing, doubling_hook(x[0])),
      COMPUTE(1, 1, pick_nothing, relu_hook(x[0])),
      COMPUTE(1, 1, pick_nothing, silent_hook(x[0])),
      COMPUTE(1, 2, pick_nothing, reading_hook(x[0], x[1])),
      FACTORY(pick_new_shape, at::zeros(shape)),
      FACTORY(pick_new_shape_and_type, at::ones(shape, at::ScalarType(n[0]))),
      FACTORY(pick_new_shape, at::full(shape, n[0] / 4.0)),
      FACTORY(pick_length, at::arange(n[0])),
      RANDOM(0, pick_new_shape, at::rand(shape)),
      RANDOM(1, pick_nothing, at::rand_like(x[0])),
      RANDOM(1, pick_nothing, at::dropout(x[0], 0.5, true)),
      RANDOM(1, pick_nothing, x[0].normal_()),
      RANDOM(1, pick_nothing, x[0].uniform_()),
      RANDOM(1, pick_nothing, x[0].bernoulli_(0.5)),
  };
  return kRows;
}

}  // namespace foregrad::cli::fuzz
