#include "capture/strided_views.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided.h>
#include <torch/library.h>

#include <memory>
#include <utility>

#include "capture/registration.h"
#include "capture/trace_tensor.h"
#include "graph/alias.h"
#include "graph/overlap.h"

namespace foregrad {

namespace {

namespace functional = at::functionalization::impl;

/// A view by strides of the memory's first tensor. The offset counts from that tensor's first
/// element.
struct StridedViewMeta final : at::functionalization::ViewMeta {
  StridedViewMeta(TensorType type, int64_t offset)
      : ViewMeta(/*has_symbolic_inputs=*/false),
        type_(std::move(type)),
        offset_(offset),
        reapplies_views_(functional::getFunctionalizationReapplyViewsTLS()) {}

  at::Tensor forward(const at::Tensor& base) override {
    const at::Tensor view = alias_of(base, type_, offset_);
    return reapplies_views_ ? view : view.clone(at::MemoryFormat::Contiguous);
  }
  at::Tensor reverse(const at::Tensor& base, const at::Tensor& mutated_view) override {
    return alias_scatter(base, mutated_view, type_, offset_);
  }

 private:
  TensorType type_;
  int64_t offset_;
  bool reapplies_views_;
};

at::Tensor strided_view(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides,
                        std::optional<int64_t> storage_offset) {
  if (!functional::isFunctionalTensor(self)) {
    at::AutoDispatchSkipFunctionalize below;
    return at::as_strided(self, sizes, strides, storage_offset);
  }
  functional::sync(self);
  auto& storage = functional_storage(self.storage());
  storage.apply_updates();
  const at::Tensor& base = storage.base();
  TensorType type = type_of(self);
  type.sizes = sizes;
  type.strides = strides;
  type.storage_offset = storage_offset.value_or(self.storage_offset());
  if (const auto* traced = as_trace_tensor(base)) {
    at::native::checkInBoundsForStorage(sizes, strides, type.storage_offset, self.dtype(),
                                        traced->meta().storage());
  }
  const int64_t offset = offset_between(type_of(base), type);
  auto meta = std::make_shared<StridedViewMeta>(std::move(type), offset);
  at::Tensor view;
  {
    at::AutoDispatchSkipFunctionalize below;
    view = meta->forward(base);
  }
  // The constructor takes storage and views from a wrapper; this one has no views.
  at::Tensor root = functional::to_functional_tensor(base);
  root.unsafeGetTensorImpl()->set_storage_keep_dtype(self.storage());
  at::Tensor result = at::detail::make_tensor<at::FunctionalTensorWrapper>(
      view, functional::unsafeGetFunctionalWrapper(root), std::move(meta));
  functional::sync(result);
  return result;
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides,
                      std::optional<int64_t> storage_offset) {
  return strided_view(self, sizes, strides, storage_offset);
}

/// Gives a wrapper the views and the memory of another; it stays the same tensor to autograd.
void become(const at::Tensor& self, const at::Tensor& other) {
  self.unsafeGetTensorImpl()->shallow_copy_from(other.getIntrusivePtr());
}

const at::Tensor& stride_in_place(const at::Tensor& self, at::IntArrayRef sizes,
                                  at::IntArrayRef strides, std::optional<int64_t> storage_offset) {
  if (functional::isFunctionalTensor(self)) {
    become(self, strided_view(self, sizes, strides, storage_offset));
  } else {
    at::AutoDispatchSkipFunctionalize below;
    self.as_strided_(sizes, strides, storage_offset);
  }
  return self;
}

/// libtorch's own kernel.
struct UsualResize {
  c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::resize_", "");
  c10::SafeKernelFunction kernel =
      op.getComputedKernelForDispatchKey(c10::DispatchKey::Functionalize);
};
const UsualResize* usual_resize = nullptr;

/// A tensor that has room stays in its memory.
const at::Tensor& resize_in_place(c10::DispatchKeySet keys, const at::Tensor& self,
                                  at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  if (functional::isFunctionalTensor(self)) {
    functional::sync(self);
    if (self.sizes() == sizes && !format) return self;
    TensorType type = type_of(self);
    type.sizes = sizes;
    type.strides = contiguous_strides(type.sizes);
    auto& storage = functional_storage(self.storage());
    storage.apply_updates();
    const auto* memory = as_trace_tensor(storage.base());
    const bool has_room =
        memory && extent_of(type).end <= static_cast<int64_t>(memory->meta().storage().nbytes());
    if (has_room && (!format || *format == at::MemoryFormat::Contiguous)) {
      become(self, strided_view(self, type.sizes, type.strides, type.storage_offset));
      return self;
    }
  }
  torch::jit::Stack stack{self, sizes, format};
  usual_resize->kernel.callBoxed(usual_resize->op, keys, &stack);
  return self;
}

/// Views of the memory that the tensor lay in stay views of it, and may be written.
at::Tensor& set_in_place(at::Tensor& self, const at::Tensor& source) {
  if (functional::isFunctionalTensor(self)) {
    TORCH_CHECK(functional::isFunctionalTensor(source) && source.dtype() == self.dtype(),
                "set_: a tensor of a trace is given the storage of one that is not traced, or of "
                "another dtype");
    // The same elements, but another tensor: kernels tell one from the other.
    functional::sync(source);
    become(self, strided_view(source, source.sizes(), source.strides(), source.storage_offset()));
    functional::unsafeGetFunctionalWrapper(self)->mark_storage_changed();
  } else {
    at::AutoDispatchSkipFunctionalize below;
    self.set_(source);
  }
  return self;
}

/// A view that `take` gives of any tensor, by strides.
template <class Take>
at::Tensor view_by_strides(const at::Tensor& self, Take&& take) {
  const at::Tensor shape = inside_of(self);
  at::Tensor view;
  {
    // Checks its arguments and says how the view lies.
    at::AutoDispatchSkipFunctionalize below;
    view = take(shape);
  }
  if (!functional::isFunctionalTensor(self)) return view;
  return strided_view(self, view.sizes(), view.strides(), view.storage_offset());
}

at::Tensor unfold(const at::Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return view_by_strides(
      self, [&](const at::Tensor& tensor) { return tensor.unfold(dimension, size, step); });
}

at::Tensor expand(const at::Tensor& self, at::IntArrayRef sizes, bool implicit) {
  return view_by_strides(self,
                         [&](const at::Tensor& tensor) { return tensor.expand(sizes, implicit); });
}

}  // namespace

void keep_strided_views() {
  static const auto* const library = [] {
    const QuietRegistration quiet;
    usual_resize = new UsualResize;
    auto* made = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Functionalize,
                                    __FILE__, __LINE__);
    made->impl("as_strided", as_strided);
    made->impl("as_strided_", stride_in_place);
    made->impl("expand", expand);
    made->impl("resize_", TORCH_FN(resize_in_place));
    made->impl("set_.source_Tensor", set_in_place);
    made->impl("unfold", unfold);
    return made;
  }();
  static_cast<void>(library);
}

}  // namespace foregrad
