// Draws how the caller makes the arguments.
#pragma once

#include <ATen/core/Tensor.h>

#include "cli/fuzz/program.h"
#include "cli/fuzz/random.h"

namespace foregrad::cli::fuzz {

/// Draws bases, views of them, and arguments among these.
Inputs draw_inputs(Random& random);

/// Draws inputs whose arguments have the sizes and types of the given ones, but share memory in
/// another way: some apart, some twice, some overlapping.
Inputs draw_other_inputs(Random& random, const Tensors& arguments);

}  // namespace foregrad::cli::fuzz
