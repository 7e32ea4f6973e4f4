// Constant tensors: the zero-dimensional CPU tensors that may stand as literals.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "graph/scanner.h"

namespace foregrad {

/// Writes the element of a zero-dimensional CPU tensor: `2.0`, `true`, `complex(1.0, -0.0)`, or
/// `bytes 01ff` (in the order of the memory) where no number stands for exactly these bits.
std::string element_to_text(const at::Tensor& constant);

/// Reads an element of the given dtype and makes a zero-dimensional CPU tensor of it.
at::Tensor read_element(Scanner& scanner, at::ScalarType dtype);

/// Compares dtype, wrapped flag and bits of two zero-dimensional CPU tensors; others are equal only
/// to themselves.
bool constants_equal(const at::Tensor& left, const at::Tensor& right);

/// Hashes so that equal constants hash alike.
size_t constant_hash(const at::Tensor& constant);

/// Whether the tensor is a defined, zero-dimensional, strided CPU tensor without lazy bits.
bool is_constant(const at::Tensor& tensor);

/// Writes a number so that it reads back to the same bits (but for the payload of a NaN) and is
/// seen to be a float.
std::string float_to_text(double number);
std::string float_to_text(float number);

/// Reads a number with or without a mark of being a float, `nan`, `inf` and `-inf`.
double read_double(Scanner& scanner);
float read_float(Scanner& scanner);

}  // namespace foregrad
