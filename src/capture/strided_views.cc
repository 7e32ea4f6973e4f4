#include "capture/strided_views.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/as_strided_copy.h>
#include <ATen/ops/as_strided_scatter.h>
#include <torch/library.h>

#include <utility>
#include <vector>

#include "capture/trace_tensor.h"

namespace foregrad {

namespace {

namespace functional = at::functionalization::impl;

/// A view by strides of the memory's first tensor. The offset counts from that tensor's first
/// element.
struct StridedViewMeta final : at::functionalization::ViewMeta {
  StridedViewMeta(std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset)
      : ViewMeta(/*has_symbolic_inputs=*/false),
        sizes_(std::move(sizes)),
        strides_(std::move(strides)),
        offset_(offset),
        reapplies_views_(functional::getFunctionalizationReapplyViewsTLS()) {}

  at::Tensor forward(const at::Tensor& base) override {
    const int64_t offset = base.storage_offset() + offset_;
    return reapplies_views_ ? at::as_strided(base, sizes_, strides_, offset)
                            : at::as_strided_copy(base, sizes_, strides_, offset);
  }
  at::Tensor reverse(const at::Tensor& base, const at::Tensor& mutated_view) override {
    return at::as_strided_scatter(base, mutated_view, sizes_, strides_,
                                  base.storage_offset() + offset_);
  }

 private:
  std::vector<int64_t> sizes_;
  std::vector<int64_t> strides_;
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
  TORCH_CHECK(base.scalar_type() == self.scalar_type() && base.is_conj() == self.is_conj() &&
                  base.is_neg() == self.is_neg(),
              "as_strided: a view by strides of a tensor that sees its memory as another dtype is "
              "not supported in a trace");
  const int64_t first = storage_offset.value_or(self.storage_offset());
  if (const auto* traced = as_trace_tensor(base)) {
    at::native::checkInBoundsForStorage(sizes, strides, first, base.dtype(),
                                        traced->meta().storage());
  }
  const int64_t offset = first - base.storage_offset();
  auto meta = std::make_shared<StridedViewMeta>(sizes.vec(), strides.vec(), offset);
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

at::Tensor unfold(const at::Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  at::Tensor shape = self;
  if (functional::isFunctionalTensor(self)) {
    functional::sync(self);
    shape = functional::from_functional_tensor(self);
  }
  at::Tensor view;
  {
    // Checks its arguments and says how the windows lie.
    at::AutoDispatchSkipFunctionalize below;
    view = shape.unfold(dimension, size, step);
  }
  if (!functional::isFunctionalTensor(self)) return view;
  return strided_view(self, view.sizes(), view.strides(), view.storage_offset());
}

}  // namespace

void keep_strided_views() {
  static const auto* const library = [] {
    // libtorch has kernels for them, and warns of those that take their place.
    struct Ignore final : c10::WarningHandler {
      void process(const c10::Warning& /*warning*/) override {}
    } ignore;
    c10::WarningUtils::WarningHandlerGuard guard(&ignore);
    auto* made = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Functionalize,
                                    __FILE__, __LINE__);
    made->impl("as_strided", as_strided);
    made->impl("unfold", unfold);
    return made;
  }();
  static_cast<void>(library);
}

}  // namespace foregrad
