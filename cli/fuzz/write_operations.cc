// Operations that write their first operand.
#include <ATen/ATen.h>

#include "cli/fuzz/custom_functions.h"
#include "cli/fuzz/operation.h"
#include "cli/fuzz/picks.h"

#define WRITE(weight, operands, pick, ...) \
  FOREGRAD_FUZZ_OPERATION(Write, weight, operands, pick, __VA_ARGS__)

namespace foregrad::cli::fuzz {

const Operations& write_operations() {
  static const Operations kRows{
      WRITE(4, 2, pick_nothing, x[0].add_(x[1])),
      WRITE(3, 2, pick_nothing, x[0].mul_(x[1])),
      WRITE(4, 2, pick_nothing, x[0].copy_(x[1])),
      WRITE(1, 2, pick_nothing, x[0].sub_(x[1])),
      WRITE(3, 1, pick_number, x[0].add_(n[0])),
      WRITE(2, 1, pick_number, x[0].mul_(n[0])),
      WRITE(2, 1, pick_number, x[0].fill_(n[0])),
      WRITE(2, 1, pick_nothing, x[0].zero_()),
      WRITE(2, 1, pick_nothing, x[0].sin_()),
      WRITE(1, 1, pick_nothing, x[0].neg_()),
      WRITE(1, 1, pick_nothing, x[0].relu_()),
      WRITE(1, 1, pick_two_numbers, x[0].clamp_(n[0], n[1])),
      WRITE(1, 1, pick_number, x[0].masked_fill_(x[0] == 0.5, n[0])),
      WRITE(1, 1, pick_dim, x[0].cumsum_(n[0])),
      WRITE(1, 1, pick_dim_and_number, x[0].index_fill_(n[0], at::arange(n[1]), n[2])),
      WRITE(1, 1, pick_dim_and_index, x[0].scatter_(n[0], at::zeros_like(x[0], at::kLong), n[2])),
      WRITE(1, 2, pick_length, x[0].index_put_({at::arange(n[0])}, x[1])),
      WRITE(1, 1, pick_nothing, Doubled::apply(x[0])),
      WRITE(2, 1, pick_dim_and_index, x[0].select(n[0], n[1]).add_(n[2])),
      WRITE(2, 2, pick_range, x[0].narrow(n[0], n[1], n[2]).copy_(x[1])),
  };
  return kRows;
}

}  // namespace foregrad::cli::fuzz
