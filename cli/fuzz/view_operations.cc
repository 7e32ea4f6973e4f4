// Operations whose result shares memory with their operand, and those that change what a tensor's
// handle says about its memory.
#include <ATen/ATen.h>

#include "cli/fuzz/operation.h"
#include "cli/fuzz/picks.h"

#define VIEW(weight, pick, ...) FOREGRAD_FUZZ_OPERATION(View, weight, 1, pick, __VA_ARGS__)
#define METADATA(operands, pick, ...) \
  FOREGRAD_FUZZ_OPERATION(Metadata, 1, operands, pick, __VA_ARGS__)

namespace foregrad::cli::fuzz {

const Operations& view_operations() {
  static const Operations kRows{
      VIEW(3, pick_nothing, x[0].detach()),
      VIEW(1, pick_nothing, x[0].alias()),
      VIEW(4, pick_view, x[0].view(shape)),
      VIEW(2, pick_view, x[0].reshape(shape)),
      VIEW(1, pick_nothing, x[0].flatten()),
      VIEW(3, pick_two_dims, x[0].transpose(n[0], n[1])),
      VIEW(2, pick_matrix, x[0].t()),
      VIEW(2, pick_permutation, x[0].permute(shape)),
      VIEW(5, pick_dim_and_index, x[0].select(n[0], n[1])),
      VIEW(5, pick_slice, x[0].slice(n[0], n[1], n[2], n[3])),
      VIEW(3, pick_range, x[0].narrow(n[0], n[1], n[2])),
      VIEW(2, pick_new_dim, x[0].unsqueeze(n[0])),
      VIEW(1, pick_nothing, x[0].squeeze()),
      VIEW(1, pick_dim, x[0].squeeze(n[0])),
      VIEW(3, pick_expansion, x[0].expand(shape)),
      VIEW(2, pick_diagonal, x[0].diagonal(n[0])),
      VIEW(1, pick_window, x[0].unfold(n[0], n[1], n[2])),
      VIEW(2, pick_strides, x[0].as_strided(shape, steps, n[0])),
      VIEW(2, pick_dim_and_part, x[0].split(n[1], n[0])),
      VIEW(1, pick_dim_and_part, x[0].chunk(n[1], n[0])),
      VIEW(2, pick_dim_and_index, x[0].unbind(n[0])),
      VIEW(3, pick_complex, at::view_as_real(x[0])),
      VIEW(2, pick_complex, x[0].conj()),
      VIEW(1, pick_complex, at::imag(x[0])),
      VIEW(1, pick_pairs, at::view_as_complex(x[0])),
      METADATA(1, pick_matrix, x[0].t_()),
      METADATA(1, pick_two_dims, x[0].transpose_(n[0], n[1])),
      METADATA(1, pick_nothing, x[0].squeeze_()),
      METADATA(1, pick_new_dim, x[0].unsqueeze_(n[0])),
      METADATA(1, pick_strides, x[0].as_strided_(shape, steps, n[0])),
      METADATA(2, pick_nothing, x[0].set_(x[1].to(x[0].scalar_type()))),
      METADATA(1, pick_smaller_shape, x[0].resize_(shape)),
      METADATA(1, pick_nothing, x[0].detach_()),
      METADATA(1, pick_flag, x[0].requires_grad_(n[0] != 0)),
  };
  return kRows;
}

}  // namespace foregrad::cli::fuzz
