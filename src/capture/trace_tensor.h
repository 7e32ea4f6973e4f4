// The tensor that stands for a value while a program is traced: all of a CPU tensor but its data.
#pragma once

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include "graph/ids.h"
#include "graph/tensor_type.h"

namespace foregrad {

/// Holds a meta tensor and reports the device CPU. It shares the meta tensor's storage, so that
/// views alias as they would with data. Its key set is that of a CPU tensor plus the trace key.
struct TraceTensorImpl final : c10::TensorImpl {
  TraceTensorImpl(at::Tensor meta, ValueId value);

  const at::Tensor& meta() const { return meta_; }
  ValueId value() const { return value_; }

  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(
      const c10::VariableVersion& version, bool allow_tensor_metadata_change) const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(
      c10::VariableVersion&& version, bool allow_tensor_metadata_change) const override;

 private:
  at::Tensor meta_;
  ValueId value_;
};

/// Makes the trace tensor of a value.
at::Tensor make_trace_tensor(at::Tensor meta, ValueId value);

/// Returns the implementation if the tensor is a trace tensor, else null. Undefined tensors are
/// none.
TraceTensorImpl* as_trace_tensor(const at::Tensor& tensor);

/// Whether the tensor is a functional wrapper. A plain tensor that was given a wrapper's data
/// (`set_data`) has a wrapper's keys and is none.
bool is_wrapper(const at::Tensor& tensor);

/// Returns the storage of functional wrappers as what it is.
at::functionalization::FunctionalStorageImpl& functional_storage(const c10::Storage& storage);

/// Returns the tensor inside a functional wrapper, its pending writes applied; any other tensor, or
/// an undefined one, itself.
at::Tensor inside_of(const at::Tensor& tensor);

/// Makes it an error to ask tensors over the storage for a pointer: some of what reads data does no
/// more.
void forbid_data(const c10::Storage& storage);

/// Returns the trace tensor's implementation inside a functional wrapper, null if there is none.
/// Does not synchronise the wrapper.
TraceTensorImpl* traced_inside(const at::Tensor& wrapper);

/// Makes a meta tensor of the given type, whatever its device, over a storage that reaches as far
/// as the type does.
at::Tensor make_meta(const TensorType& type);

}  // namespace foregrad
