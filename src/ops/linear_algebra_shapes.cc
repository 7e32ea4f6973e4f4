#include "ops/linear_algebra_shapes.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "ops/result_types.h"

namespace foregrad {

namespace {

bool is_full_precision(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
}

/// Batches of matrices, each laid out column by column as LAPACK gives them.
at::Tensor by_columns(std::vector<int64_t> sizes, const at::Tensor& like) {
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  return contiguous_result(sizes, like).mT();
}

Results dot(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& other = args[1].toTensor();
  const bool is_covered =
      self.dim() == 1 && have_one_floating_dtype({self, other}) && self.sizes() == other.sizes();
  if (!is_covered) return std::nullopt;
  return results(contiguous_result({}, self));
}

Results matrix_vector(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& vector = args[1].toTensor();
  const bool is_covered = self.dim() == 2 && vector.dim() == 1 &&
                          have_one_floating_dtype({self, vector}) && self.size(1) == vector.size(0);
  if (!is_covered) return std::nullopt;
  return results(contiguous_result({self.size(0)}, self));
}

/// Points [batch…, n, d] and [batch…, m, d].
bool are_points(const at::Tensor& a, const at::Tensor& b) {
  return is_full_precision(a) && have_one_floating_dtype({a, b}) && a.dim() >= 2 &&
         a.dim() == b.dim() && a.size(-1) == b.size(-1) && a.numel() > 0 && b.numel() > 0 &&
         a.sizes().slice(0, a.sizes().size() - 2) == b.sizes().slice(0, b.sizes().size() - 2);
}

Results distances(Arguments args) {
  const at::Tensor& a = args[0].toTensor();
  const at::Tensor& b = args[1].toTensor();
  const int64_t mode = args[3].isNone() ? 0 : args[3].toInt();
  if (!are_points(a, b) || !(args[2].toDouble() >= 0) || mode < 0 || mode > 2) return std::nullopt;
  return results(contiguous_result(with_size(a.sizes(), a.dim() - 1, b.size(-2)), a));
}

Results distances_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& a = args[1].toTensor();
  const at::Tensor& b = args[2].toTensor();
  const at::Tensor& distances = args[4].toTensor();
  const bool is_covered =
      are_points(a, b) && have_one_floating_dtype({grad, a, distances}) &&
      grad.sizes() == at::IntArrayRef(with_size(a.sizes(), a.dim() - 1, b.size(-2))) &&
      distances.sizes() == grad.sizes() && distances.is_contiguous();
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(a.sizes(), a));
}

/// Points [n, d], each pair once.
Results pair_distances(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (!is_full_precision(self) || self.dim() != 2 || !self.is_contiguous() ||
      !(args[1].toDouble() >= 0))
    return std::nullopt;
  const int64_t points = self.size(0);
  return results(contiguous_result({points <= 1 ? 0 : points * (points - 1) / 2}, self));
}

Results pair_distances_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const at::Tensor& distances = args[3].toTensor();
  const int64_t points = self.dim() == 2 ? self.size(0) : 0;
  const bool is_covered = points > 1 && is_full_precision(self) && self.is_contiguous() &&
                          have_one_floating_dtype({grad, self, distances}) && grad.dim() == 1 &&
                          grad.size(0) == points * (points - 1) / 2 &&
                          distances.sizes() == grad.sizes() && distances.is_contiguous();
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(self.sizes(), self));
}

bool are_square(const at::Tensor& matrices) {
  return matrices.dim() >= 2 && matrices.size(-1) == matrices.size(-2) &&
         is_full_precision(matrices) && matrices.numel() > 0;
}

Results cholesky_inverse(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (!are_square(self)) return std::nullopt;
  return results(by_columns(self.sizes().vec(), self));
}

/// Right sides `self` of factors `args[1]`, of one batch.
Results cholesky_solve(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& factor = args[1].toTensor();
  const bool is_covered = are_square(factor) && have_one_floating_dtype({self, factor}) &&
                          self.dim() == factor.dim() && self.numel() > 0 &&
                          self.size(-2) == factor.size(-1) &&
                          self.sizes().slice(0, self.sizes().size() - 2) ==
                              factor.sizes().slice(0, self.sizes().size() - 2);
  if (!is_covered) return std::nullopt;
  return results(by_columns(self.sizes().vec(), self));
}

Results outer_sum(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& batch1 = args[1].toTensor();
  const at::Tensor& batch2 = args[2].toTensor();
  const bool is_covered =
      have_one_floating_dtype({self, batch1, batch2}) && batch1.dim() == 3 && batch2.dim() == 3 &&
      batch1.size(0) == batch2.size(0) && batch1.size(2) == batch2.size(1) && batch1.numel() > 0 &&
      batch2.numel() > 0 && self.sizes() == at::IntArrayRef({batch1.size(1), batch2.size(2)});
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(self.sizes(), self));
}

constexpr ShapeRow kRows[] = {
    {"aten::_cdist_backward", "", distances_backward},
    {"aten::_cdist_forward", "", distances},
    {"aten::_cholesky_solve_helper", "", cholesky_solve},
    {"aten::_pdist_backward", "", pair_distances_backward},
    {"aten::_pdist_forward", "", pair_distances},
    {"aten::addbmm", "", outer_sum},
    {"aten::cholesky_inverse", "", cholesky_inverse},
    {"aten::cholesky_solve", "", cholesky_solve},
    {"aten::dot", "", dot},
    {"aten::mv", "", matrix_vector},
    {"aten::vdot", "", dot},
};

}  // namespace

std::span<const ShapeRow> linear_algebra_rules() { return kRows; }

}  // namespace foregrad
