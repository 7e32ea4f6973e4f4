// Parameters that fit an operand, one function for each kind of operation.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "cli/fuzz/operation.h"

namespace foregrad::cli::fuzz {

/// Draws sizes of a small tensor: up to three dimensions, rarely of size 0.
std::vector<int64_t> draw_sizes(Random& random);

/// Draws an element type, mostly float.
at::ScalarType draw_type(Random& random);

/// Each draws parameters for `operand` and returns true, or false if none fit.
bool pick_nothing(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_number(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_two_numbers(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_one(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_type(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_flag(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_length(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_new_shape(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_new_shape_and_type(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_dim(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_dim_list(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_dim_and_part(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_dim_and_index(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_dim_and_number(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_two_dims(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_matrix(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_range(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_slice(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_new_dim(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_permutation(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_view(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_expansion(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_strides(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_smaller_shape(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_diagonal(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_window(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_complex(Random& random, const at::Tensor& operand, Parameters& parameters);
bool pick_pairs(Random& random, const at::Tensor& operand, Parameters& parameters);

}  // namespace foregrad::cli::fuzz
