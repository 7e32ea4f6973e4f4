#include "graph/alias.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include "graph/refusal.h"

namespace foregrad {

namespace {

int64_t item_of(at::ScalarType dtype) { return static_cast<int64_t>(c10::elementSize(dtype)); }

bool is_real_part_type(at::ScalarType real, at::ScalarType complex) {
  return c10::isComplexType(complex) && c10::toRealValueType(complex) == real;
}

/// Sees the elements as they are stored: without the lazy bits.
at::Tensor stored(const at::Tensor& tensor) {
  at::Tensor result = tensor;
  if (result.is_neg()) result = result._neg_view();
  if (result.is_conj()) result = result._conj();
  return result;
}

[[noreturn]] void refuse_dtype(const at::Tensor& source, at::ScalarType dtype) {
  throw Refusal(
      fmt::format("memory of a tensor `{}` is seen as dtype `{}`, which is not supported. Expected "
                  "a tensor without gaps that holds a whole number of elements. Pass the base.",
                  to_text(type_of(source)), c10::toString(dtype)));
}

at::Tensor flat(const at::Tensor& source, at::ScalarType dtype, at::IntArrayRef sizes,
                at::IntArrayRef strides) {
  if (!type_of(source).is_dense_and_non_overlapping()) refuse_dtype(source, dtype);
  return source.as_strided(sizes, strides, source.storage_offset());
}

/// Sees the same memory as elements of another dtype, whatever their shape. What is left at its end
/// is nobody's. Autograd follows a view between real and complex numbers only.
at::Tensor with_dtype(const at::Tensor& source, at::ScalarType dtype) {
  const at::ScalarType from = source.scalar_type();
  // A dense one as it is stored: `as_strided_scatter` takes no other that requires grad.
  if (from == dtype && (source.is_contiguous() || !type_of(source).is_dense_and_non_overlapping()))
    return source;
  if (from == dtype) return flat(source, dtype, {source.numel()}, {1});
  if (is_real_part_type(dtype, from)) return at::view_as_real(source);
  if (is_real_part_type(from, dtype))
    return at::view_as_complex(flat(source, dtype, {source.numel() / 2, 2}, {2, 1}));
  if (item_of(from) == item_of(dtype)) return source.view(dtype);
  const int64_t whole = source.numel() * item_of(from) / item_of(dtype) * item_of(dtype);
  return flat(source, dtype, {whole / item_of(from)}, {1}).view(dtype);
}

/// Puts elements that `with_dtype` gave back in the shape of the source.
at::Tensor as_source(const at::Tensor& elements, const at::Tensor& source) {
  const at::ScalarType from = source.scalar_type();
  const at::ScalarType dtype = elements.scalar_type();
  if (is_real_part_type(dtype, from)) return at::view_as_complex(elements);
  if (from == dtype && elements.strides() == source.strides()) return elements;
  if (from != dtype && !is_real_part_type(from, dtype) && item_of(from) == item_of(dtype))
    return elements.view(from);
  const at::Tensor back =
      is_real_part_type(from, dtype) ? at::view_as_real(elements) : elements.view(from);
  return back.as_strided(source.sizes(), source.strides(), back.storage_offset());
}

}  // namespace

at::Tensor tensor_over(const c10::Storage& storage, const TensorType& type) {
  at::Tensor tensor =
      at::empty({0}, c10::TensorOptions().dtype(type.dtype).device(storage.device()));
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(type.sizes, type.strides,
                                                      type.storage_offset);
  tensor._set_conj(type.is_conj);
  tensor._set_neg(type.is_neg);
  return tensor;
}

at::Tensor alias_of(const at::Tensor& source, const TensorType& type, int64_t offset) {
  const at::Tensor elements = with_dtype(stored(source), type.dtype);
  at::Tensor alias =
      elements.as_strided(type.sizes, type.strides, elements.storage_offset() + offset);
  if (type.is_conj) alias = alias._conj();
  if (type.is_neg) alias = alias._neg_view();
  return alias;
}

at::Tensor alias_of(const at::Tensor& source, const TensorType& type, int64_t offset,
                    uint8_t creation_meta) {
  using torch::autograd::CreationMeta;
  const auto creation = static_cast<CreationMeta>(creation_meta);
  c10::AutoGradMode grad_mode(creation != CreationMeta::NO_GRAD_MODE &&
                              creation != CreationMeta::INFERENCE_MODE);
  at::Tensor view = alias_of(source, type, offset);
  torch::autograd::impl::get_view_autograd_meta(view)->set_creation_meta(creation);
  return view;
}

at::Tensor alias_scatter(const at::Tensor& source, const at::Tensor& value, const TensorType& type,
                         int64_t offset) {
  at::Tensor kept = value;
  if (type.is_neg) kept = kept.neg();
  if (type.is_conj) kept = kept.conj();
  const at::Tensor source_elements = stored(source);
  const at::Tensor elements = with_dtype(source_elements, type.dtype);
  if (elements.nbytes() != source.nbytes()) refuse_dtype(source, type.dtype);
  const at::Tensor written = elements.as_strided_scatter(kept, type.sizes, type.strides,
                                                         elements.storage_offset() + offset);
  at::Tensor result = as_source(written, source_elements);
  if (source.is_conj()) result = result._conj();
  if (source.is_neg()) result = result._neg_view();
  return result;
}

int64_t offset_between(const TensorType& outer, const TensorType& inner) {
  const int64_t bytes =
      inner.storage_offset * item_of(inner.dtype) - outer.storage_offset * item_of(outer.dtype);
  if (bytes % item_of(inner.dtype) != 0) {
    throw Refusal(
        fmt::format("a tensor `{}` begins between two elements of the tensor `{}` whose memory it "
                    "shares, which is not supported. Pass tensors of one dtype.",
                    to_text(inner), to_text(outer)));
  }
  return bytes / item_of(inner.dtype);
}

}  // namespace foregrad
