// What is known of a tensor without its data.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <c10/util/DimVector.h>

#include <string>

namespace foregrad {

/// Describes a strided tensor: everything a kernel or a caller can see of it but its data.
/// Sizes and strides are in elements.
struct TensorType {
  at::ScalarType dtype = at::kFloat;
  c10::DimVector sizes;
  c10::DimVector strides;
  int64_t storage_offset = 0;
  c10::Device device = c10::kCPU;
  bool is_conj = false;  // the lazy conjugate bit
  bool is_neg = false;   // the lazy negative bit

  bool operator==(const TensorType&) const = default;

  int64_t numel() const;
  /// Returns the bytes that the elements take, without gaps between them.
  size_t size_bytes() const;
  /// Whether the elements fill a stretch of memory, each place once, in some order of the
  /// dimensions.
  bool is_dense_and_non_overlapping() const;
  /// Whether it begins at a multiple of the widest element, 16 bytes, from the storage's start.
  bool begins_aligned() const;
};

/// Returns the strides of a contiguous tensor.
c10::DimVector contiguous_strides(const c10::DimVector& sizes);

/// Returns what is equal for two strided tensors exactly if their storages alias.
const void* storage_identity(const at::Tensor& tensor);

/// Returns the tensor that autograd knows as the base of a view.
at::Tensor base_of(const at::Tensor& view);

/// Returns what is equal for two tensors exactly if they share a version counter.
const void* version_counter_identity(const at::Tensor& tensor);

/// Reads the type of a strided tensor.
TensorType type_of(const at::Tensor& tensor);

/// Writes a type as in graph text, for example `f32[2,3]{3,1}`; offset, device and bits only where
/// not the default.
std::string to_text(const TensorType& type);

}  // namespace foregrad
