#include "capture/view_history.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

#include "graph/alias.h"
#include "graph/call.h"

namespace foregrad {

namespace {

struct StridedViewFunc final : torch::autograd::ViewFunc {
  StridedViewFunc(TensorType type, int64_t offset) : type_(std::move(type)), offset_(offset) {}

  at::Tensor operator()(const at::Tensor& base) const override {
    return alias_of(base, type_, offset_);
  }
  std::unique_ptr<ViewFunc> clone_and_set(
      std::optional<std::vector<c10::SymInt>> /*symints*/,
      std::optional<std::vector<at::Tensor>> /*tensors*/) const override {
    return std::make_unique<StridedViewFunc>(type_, offset_);
  }

 private:
  TensorType type_;
  int64_t offset_;  // from the base's first element
};

void follow(const at::Tensor& view) {
  if (!view.defined() || !at::functionalization::impl::isFunctionalTensor(view)) return;
  const auto* meta = torch::autograd::impl::get_view_autograd_meta(view);
  if (!meta || !meta->has_bw_view()) return;
  const torch::autograd::ViewInfo& info = meta->get_backward_view();
  const at::Tensor& base = info.base_;
  const bool is_strided = base.scalar_type() == view.scalar_type() &&
                          base.is_conj() == view.is_conj() && base.is_neg() == view.is_neg();
  if (!is_strided) return;
  TensorType type = type_of(view);
  const int64_t offset = offset_between(type_of(base), type);
  const_cast<torch::autograd::ViewInfo&>(info) = torch::autograd::ViewInfo(
      base, std::make_unique<StridedViewFunc>(std::move(type), offset), nullptr);
}

}  // namespace

void follow_views(const torch::jit::Stack& results) {
  for (const c10::IValue& result : results) for_each_tensor(result, follow);
}

}  // namespace foregrad
