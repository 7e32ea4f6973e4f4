#include "capture/trace_tensor.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/ops/empty_strided.h>

#include <typeinfo>

#include "capture/keys.h"

namespace foregrad {

namespace {

c10::DispatchKeySet trace_tensor_keys() {
  return c10::DispatchKeySet({c10::DispatchKey::CPU, c10::DispatchKey::AutogradCPU,
                              c10::DispatchKey::ADInplaceOrView, kTraceKey});
}

template <class Version>
c10::intrusive_ptr<c10::TensorImpl> copy_of(const TraceTensorImpl& source, Version&& version,
                                            bool allow_tensor_metadata_change) {
  auto copy = c10::make_intrusive<TraceTensorImpl>(source.meta(), source.value());
  copy->set_version_counter(std::forward<Version>(version));
  copy->set_allow_tensor_metadata_change(allow_tensor_metadata_change);
  return copy;
}

}  // namespace

TraceTensorImpl::TraceTensorImpl(at::Tensor meta, ValueId value)
    : c10::TensorImpl(c10::Storage(meta.storage()), trace_tensor_keys(), meta.dtype()),
      meta_(std::move(meta)),
      value_(value) {
  device_opt_ = c10::Device(c10::kCPU);
  set_sizes_and_strides(meta_.sizes(), meta_.strides(), meta_.storage_offset());
  if (meta_.is_conj()) _set_conj(true);
  if (meta_.is_neg()) _set_neg(true);
  forbid_data(storage_);
}

c10::intrusive_ptr<c10::TensorImpl> TraceTensorImpl::shallow_copy_and_detach(
    const c10::VariableVersion& version, bool allow_tensor_metadata_change) const {
  return copy_of(*this, version, allow_tensor_metadata_change);
}

c10::intrusive_ptr<c10::TensorImpl> TraceTensorImpl::shallow_copy_and_detach(
    c10::VariableVersion&& version, bool allow_tensor_metadata_change) const {
  return copy_of(*this, std::move(version), allow_tensor_metadata_change);
}

at::Tensor make_trace_tensor(at::Tensor meta, ValueId value) {
  return at::detail::make_tensor<TraceTensorImpl>(std::move(meta), value);
}

TraceTensorImpl* as_trace_tensor(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.unsafeGetTensorImpl()->key_set().has(kTraceKey)) return nullptr;
  auto* impl = tensor.unsafeGetTensorImpl();
  return typeid(*impl) == typeid(TraceTensorImpl) ? static_cast<TraceTensorImpl*>(impl) : nullptr;
}

bool is_wrapper(const at::Tensor& tensor) {
  if (!tensor.defined() || !at::functionalization::impl::isFunctionalTensor(tensor)) return false;
  const auto& impl = *tensor.unsafeGetTensorImpl();
  return typeid(impl) == typeid(at::FunctionalTensorWrapper);
}

at::functionalization::FunctionalStorageImpl& functional_storage(const c10::Storage& storage) {
  return *static_cast<at::functionalization::FunctionalStorageImpl*>(
      storage.unsafeGetStorageImpl());
}

at::Tensor inside_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !at::functionalization::impl::isFunctionalTensor(tensor)) return tensor;
  at::functionalization::impl::sync(tensor);
  return at::functionalization::impl::from_functional_tensor(tensor);
}

void forbid_data(const c10::Storage& storage) {
  storage.unsafeGetStorageImpl()->set_throw_on_mutable_data_ptr();
}

TraceTensorImpl* traced_inside(const at::Tensor& wrapper) {
  namespace functional = at::functionalization::impl;
  if (!is_wrapper(wrapper)) return nullptr;
  return as_trace_tensor(functional::unsafeGetFunctionalWrapper(wrapper)->value());
}

at::Tensor make_meta(const TensorType& type) {
  BelowTracingScope below;
  const auto options = at::TensorOptions().dtype(type.dtype).device(c10::kMeta);
  auto meta = at::empty_strided(type.sizes, type.strides, options);
  auto* impl = meta.unsafeGetTensorImpl();
  if (type.storage_offset != 0) {
    int64_t reach = type.storage_offset;
    if (type.numel() != 0) {
      for (size_t d = 0; d < type.sizes.size(); ++d) reach += (type.sizes[d] - 1) * type.strides[d];
      ++reach;
    }
    impl->set_storage_keep_dtype(at::empty_strided({reach}, {1}, options).storage());
    impl->set_storage_offset(type.storage_offset);
  }
  impl->_set_conj(type.is_conj);
  impl->_set_neg(type.is_neg);
  return meta;
}

}  // namespace foregrad
