// What shape rules are made of: how kernels of the CPU choose the type of a result.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "ops/shape_rules.h"

namespace foregrad {

/// Whether it is a dtype that differentiable kernels take: half, bfloat16, float or double.
bool is_real_floating(at::ScalarType dtype);

/// Whether all tensors have one dtype, and it is `is_real_floating`.
bool have_one_floating_dtype(std::initializer_list<at::Tensor> tensors);

/// Returns the dtype of a normalization's weights and statistics: the input's, or float beside half
/// precision. Returns nothing if the tensors don't go together.
std::optional<at::ScalarType> parameter_dtype(const at::Tensor& input,
                                              std::initializer_list<at::Tensor> parameters);

/// A rule's answer: these tensors.
template <class... Tensors>
Results results(Tensors... tensors) {
  return std::vector<at::Tensor>{std::move(tensors)...};
}

/// Returns the tensor argument, undefined if it is absent.
at::Tensor tensor_or_none(const c10::IValue& argument);

/// Returns a contiguous tensor of other sizes (or another dtype).
at::Tensor contiguous_result(at::IntArrayRef sizes, const at::Tensor& like);
at::Tensor contiguous_result(at::IntArrayRef sizes, const at::Tensor& like, at::ScalarType dtype);

/// Returns what a kernel gives that walks its inputs by a TensorIterator: their sizes broadcast,
/// with the strides that it chooses. Throws, in eager's words, where they don't broadcast. Inputs
/// of another dtype than `common` are cast first, as such kernels do.
at::Tensor iterated_result(std::initializer_list<at::Tensor> inputs, at::ScalarType common,
                           std::optional<at::ScalarType> dtype = std::nullopt);

/// Returns the sizes with dimension `dim` replaced.
std::vector<int64_t> with_size(at::IntArrayRef sizes, int64_t dim, int64_t size);

/// Whether the strides are those that a contiguous tensor is made with, those of sizes of one
/// included.
bool is_made_contiguous(const at::Tensor& tensor);

/// Whether every kernel finds the same memory format in the tensor. Sizes of one leave it open:
/// some kernels then see channels last, and some a contiguous tensor.
bool has_clear_format(const at::Tensor& tensor);

/// Returns a tensor of other sizes, laid out in memory as `like` suggests: channels last or
/// contiguous. `like` has a clear format.
at::Tensor suggested_result(at::IntArrayRef sizes, const at::Tensor& like);

/// Counts a dimension from the front; nothing if it is out of range. A tensor without dimensions
/// counts as one of one.
std::optional<int64_t> wrapped_dim(int64_t dim, int64_t dims);

}  // namespace foregrad
