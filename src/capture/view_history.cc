#include "capture/view_history.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <optional>
#include <utility>

#include "capture/keys.h"
#include "graph/alias.h"
#include "graph/call.h"
#include "graph/refusal.h"

namespace foregrad {

namespace {

/// Autograd takes a view from its base again to ask for its history, wherever that may be: it is no
/// operator of the user's function. From any other tensor, a gradient, it takes the view to use it.
class HistoryScope {
 public:
  HistoryScope(const at::Tensor& from, const void* base) {
    if (from.unsafeGetTensorImpl() == base) below_.emplace();
  }

 private:
  std::optional<BelowFrontScope> below_;
};

struct StridedViewFunc final : torch::autograd::ViewFunc {
  StridedViewFunc(const void* base, TensorType type, int64_t offset)
      : base_(base), type_(std::move(type)), offset_(offset) {}

  at::Tensor operator()(const at::Tensor& base) const override {
    const HistoryScope scope(base, base_);
    if (offset_ < 0) {
      throw Refusal(
          "a view begins before the tensor that it is a view of, which was given another place in "
          "its storage");
    }
    return alias_of(base, type_, offset_);
  }
  std::unique_ptr<ViewFunc> clone_and_set(
      std::optional<std::vector<c10::SymInt>> /*symints*/,
      std::optional<std::vector<at::Tensor>> /*tensors*/) const override {
    return std::make_unique<StridedViewFunc>(base_, type_, offset_);
  }
  bool takes(const TensorType& type, int64_t offset) const {
    return offset_ == offset && type_ == type;
  }

 private:
  const void* base_;  // its TensorImpl, which may be gone
  TensorType type_;
  int64_t offset_;  // from the base's first element
};

/// A view that is taken by its operators.
struct OperatorsViewFunc final : torch::autograd::ViewFunc {
  OperatorsViewFunc(const void* base, std::unique_ptr<ViewFunc> view)
      : base_(base), view_(std::move(view)) {}

  at::Tensor operator()(const at::Tensor& base) const override {
    const HistoryScope scope(base, base_);
    return (*view_)(base);
  }
  std::unique_ptr<ViewFunc> clone_and_set(
      std::optional<std::vector<c10::SymInt>> symints,
      std::optional<std::vector<at::Tensor>> tensors) const override {
    return std::make_unique<OperatorsViewFunc>(
        base_, view_->clone_and_set(std::move(symints), std::move(tensors)));
  }

 private:
  const void* base_;  // its TensorImpl, which may be gone
  std::unique_ptr<ViewFunc> view_;
};

void follow(const at::Tensor& view) {
  if (!view.defined() || !at::functionalization::impl::isFunctionalTensor(view)) return;
  const auto* meta = torch::autograd::impl::get_view_autograd_meta(view);
  if (!meta || !meta->has_bw_view()) return;
  const torch::autograd::ViewInfo& info = meta->get_backward_view();
  const at::Tensor& base = info.base_;
  const bool is_strided = base.scalar_type() == view.scalar_type() &&
                          base.is_conj() == view.is_conj() && base.is_neg() == view.is_neg();
  std::unique_ptr<torch::autograd::ViewFunc> take;
  const torch::autograd::ViewFunc* known = info.has_view_fn() ? &info.view_fn() : nullptr;
  if (is_strided) {
    TensorType type = type_of(view);
    const int64_t offset = offset_between(type_of(base), type);
    const auto* strided = dynamic_cast<const StridedViewFunc*>(known);
    if (strided && strided->takes(type, offset)) return;
    take = std::make_unique<StridedViewFunc>(base.unsafeGetTensorImpl(), std::move(type), offset);
  } else {
    if (!known || dynamic_cast<const OperatorsViewFunc*>(known)) return;
    take = std::make_unique<OperatorsViewFunc>(base.unsafeGetTensorImpl(), known->clone_and_set());
  }
  const_cast<torch::autograd::ViewInfo&>(info) =
      torch::autograd::ViewInfo(base, std::move(take), nullptr);
}

}  // namespace

void follow_views(std::span<const c10::IValue> values) {
  for (const c10::IValue& value : values) for_each_tensor(value, follow);
}

}  // namespace foregrad
