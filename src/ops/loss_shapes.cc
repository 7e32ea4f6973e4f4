#include "ops/loss_shapes.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "ops/result_types.h"

namespace foregrad {

namespace {

bool is_reduction(const c10::IValue& number) {
  return number.toInt() >= 0 && number.toInt() < at::Reduction::END;
}

bool is_reduced(const c10::IValue& reduction) { return reduction.toInt() != at::Reduction::None; }

/// Whether the gradient of a loss can be that of `loss_sizes`.
bool is_gradient(const at::Tensor& grad, const c10::IValue& reduction, at::IntArrayRef loss_sizes) {
  return is_reduction(reduction) &&
         (is_reduced(reduction) ? grad.dim() == 0 : grad.sizes() == loss_sizes);
}

/// A loss of each element.
Results binary_cross_entropy(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& target = args[1].toTensor();
  const at::Tensor weight = tensor_or_none(args[2]);
  const bool is_covered = have_one_floating_dtype({self, target, weight}) &&
                          is_reduction(args[3]) && self.sizes() == target.sizes() &&
                          (!weight.defined() || weight.sizes() == self.sizes());
  if (!is_covered) return std::nullopt;
  return results(is_reduced(args[3]) ? contiguous_result({}, self) : at::empty_like(self));
}

Results binary_cross_entropy_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const at::Tensor& target = args[2].toTensor();
  const at::Tensor weight = tensor_or_none(args[3]);
  const bool is_covered = have_one_floating_dtype({grad, self, target, weight}) &&
                          self.sizes() == target.sizes() &&
                          (!weight.defined() || weight.sizes() == self.sizes()) &&
                          is_gradient(grad, args[4], self.sizes());
  if (!is_covered) return std::nullopt;
  return results(at::empty_like(self));
}

Results huber_loss(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& target = args[1].toTensor();
  const bool is_covered = have_one_floating_dtype({self, target}) && is_reduction(args[2]) &&
                          self.sizes() == target.sizes() && args[3].toDouble() > 0;
  if (!is_covered) return std::nullopt;
  return results(is_reduced(args[2]) ? contiguous_result({}, self) : at::empty_like(self));
}

Results mse_loss_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const at::Tensor& target = args[2].toTensor();
  const bool is_covered = have_one_floating_dtype({grad, self, target}) &&
                          self.sizes() == target.sizes() &&
                          is_gradient(grad, args[3], self.sizes());
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(self.sizes(), self));
}

/// Scores [N, C, H, W], targets [N, H, W].
bool are_scores(const at::Tensor& self, const at::Tensor& target, const at::Tensor& weight) {
  return self.dim() == 4 && target.dim() == 3 && self.numel() > 0 &&
         target.scalar_type() == at::kLong && self.size(0) == target.size(0) &&
         self.size(2) == target.size(1) && self.size(3) == target.size(2) &&
         (!weight.defined() || (weight.dim() == 1 && weight.size(0) == self.size(1)));
}

Results nll_loss2d(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& target = args[1].toTensor();
  const at::Tensor weight = tensor_or_none(args[2]);
  if (!have_one_floating_dtype({self, weight}) || !are_scores(self, target, weight))
    return std::nullopt;
  return results(contiguous_result(is_reduced(args[3]) ? at::IntArrayRef() : target.sizes(), self),
                 contiguous_result({}, self));
}

Results nll_loss2d_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const at::Tensor& target = args[2].toTensor();
  const at::Tensor weight = tensor_or_none(args[3]);
  const at::Tensor& total = args[6].toTensor();
  const bool is_covered = have_one_floating_dtype({grad, self, weight, total}) &&
                          self.is_contiguous() && are_scores(self, target, weight) &&
                          total.numel() == 1 && is_gradient(grad, args[4], target.sizes());
  if (!is_covered) return std::nullopt;
  return results(at::empty_like(self));
}

/// Scores [N, C] or [C] of which one or several classes are right.
bool are_classes(const at::Tensor& self, const at::Tensor& target, bool has_several) {
  const int64_t dims = self.dim();
  if (self.numel() == 0 || target.scalar_type() != at::kLong) return false;
  if (has_several) return (dims == 1 || dims == 2) && target.sizes() == self.sizes();
  return dims == 2 && target.dim() == 1 && target.size(0) == self.size(0);
}

bool is_full_precision(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
}

Results multi_margin_loss(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& target = args[1].toTensor();
  const bool is_covered = is_full_precision(self) && are_classes(self, target, false) &&
                          args[2].isInt() && args[2].toInt() == 1 && args[4].isNone();
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(is_reduced(args[5]) ? at::IntArrayRef() : target.sizes(), self));
}

Results multi_margin_loss_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const at::Tensor& target = args[2].toTensor();
  const bool is_covered = is_full_precision(self) && are_classes(self, target, false) &&
                          have_one_floating_dtype({grad, self}) && args[3].isInt() &&
                          args[3].toInt() == 1 && args[5].isNone() &&
                          is_gradient(grad, args[6], target.sizes());
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(self.sizes(), self));
}

Results multilabel_margin_loss(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& target = args[1].toTensor();
  if (!is_full_precision(self) || !are_classes(self, target, true)) return std::nullopt;
  const bool is_each = !is_reduced(args[2]) && self.dim() == 2;
  return results(contiguous_result(is_each ? self.sizes().slice(0, 1) : at::IntArrayRef(), self),
                 contiguous_result(target.sizes(), self));
}

Results multilabel_margin_loss_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const at::Tensor& target = args[2].toTensor();
  const at::Tensor& is_target = args[4].toTensor();
  const bool is_each = !is_reduced(args[3]) && self.dim() == 2;
  const bool is_covered = is_full_precision(self) && are_classes(self, target, true) &&
                          have_one_floating_dtype({grad, self, is_target}) &&
                          is_target.sizes() == self.sizes() &&
                          grad.sizes() == (is_each ? self.sizes().slice(0, 1) : at::IntArrayRef());
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(self.sizes(), self));
}

Results log_sigmoid(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (!is_real_floating(self.scalar_type())) return std::nullopt;
  return results(contiguous_result(self.sizes(), self), contiguous_result(self.sizes(), self));
}

Results log_sigmoid_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const at::Tensor& buffer = args[2].toTensor();
  const bool is_covered = have_one_floating_dtype({grad, self, buffer}) &&
                          grad.sizes() == self.sizes() && buffer.sizes() == self.sizes();
  if (!is_covered) return std::nullopt;
  return results(at::empty_like(grad));
}

Results ctc_loss_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& scores = args[1].toTensor();
  if (!is_full_precision(scores) || !have_one_floating_dtype({grad, scores}) || scores.dim() != 3)
    return std::nullopt;
  return results(contiguous_result(scores.sizes(), scores));
}

constexpr ShapeRow kRows[] = {
    {"aten::_ctc_loss_backward", "", ctc_loss_backward},
    {"aten::binary_cross_entropy", "", binary_cross_entropy},
    {"aten::binary_cross_entropy_backward", "", binary_cross_entropy_backward},
    {"aten::huber_loss", "", huber_loss},
    {"aten::log_sigmoid_backward", "", log_sigmoid_backward},
    {"aten::log_sigmoid_forward", "", log_sigmoid},
    {"aten::mse_loss_backward", "", mse_loss_backward},
    {"aten::multi_margin_loss", "", multi_margin_loss},
    {"aten::multi_margin_loss_backward", "", multi_margin_loss_backward},
    {"aten::multilabel_margin_loss_backward", "", multilabel_margin_loss_backward},
    {"aten::multilabel_margin_loss_forward", "", multilabel_margin_loss},
    {"aten::nll_loss2d_backward", "", nll_loss2d_backward},
    {"aten::nll_loss2d_forward", "", nll_loss2d},
};

}  // namespace

std::span<const ShapeRow> loss_rules() { return kRows; }

}  // namespace foregrad
