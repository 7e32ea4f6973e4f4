#include "ops/random_shapes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>

#include "ops/result_types.h"

namespace foregrad {

namespace {

bool is_full_precision(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
}

/// A number for each of the distribution's parameters.
Results drawn(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (!is_full_precision(self)) return std::nullopt;
  return results(contiguous_result(self.sizes(), self));
}

Results binomial(Arguments args) {
  const at::Tensor& count = args[0].toTensor();
  const at::Tensor& probability = args[1].toTensor();
  const bool is_covered = is_full_precision(count) &&
                          have_one_floating_dtype({count, probability}) &&
                          count.sizes() == probability.sizes();
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(count.sizes(), count));
}

Results gamma_gradient(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& output = args[1].toTensor();
  const bool is_covered = is_full_precision(self) && have_one_floating_dtype({self, output}) &&
                          self.sizes() == output.sizes();
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(self.sizes(), self));
}

Results multinomial(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const int64_t samples = args[1].toInt();
  const bool is_covered = is_full_precision(self) && (self.dim() == 1 || self.dim() == 2) &&
                          self.numel() > 0 && samples > 0 &&
                          (args[2].toBool() || samples <= self.size(-1));
  if (!is_covered) return std::nullopt;
  return results(
      contiguous_result(with_size(self.sizes(), self.dim() - 1, samples), self, at::kLong));
}

/// The mask is kept as truth values.
Results dropout(Arguments args) {
  const at::Tensor& input = args[0].toTensor();
  const double p = args[1].toDouble();
  if (!is_real_floating(input.scalar_type()) || input.numel() == 0 || !(p >= 0 && p <= 1))
    return std::nullopt;
  const bool trains = args[2].isNone() || args[2].toBool();
  const at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  return results(trains ? at::mul(input, mask) : at::empty_like(input), mask);
}

Results dropout_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& mask = args[1].toTensor();
  if (!is_real_floating(grad.scalar_type()) || mask.scalar_type() != at::kBool ||
      grad.sizes() != mask.sizes())
    return std::nullopt;
  return results(at::mul(iterated_result({grad, mask}, grad.scalar_type()), args[2].toDouble()));
}

template <size_t kDtype>
Results permutation(Arguments args) {
  const bool is_covered =
      args[0].toInt() >= 0 && (args[kDtype].isNone() || args[kDtype].toScalarType() == at::kLong);
  if (!is_covered) return std::nullopt;
  return results(
      at::empty({args[0].toInt()}, at::TensorOptions().dtype(at::kLong).device(at::kMeta)));
}

constexpr ShapeRow kRows[] = {
    {"aten::_sample_dirichlet", "", drawn},
    {"aten::_standard_gamma", "", drawn},
    {"aten::_standard_gamma_grad", "", gamma_gradient},
    {"aten::binomial", "", binomial},
    {"aten::multinomial", "", multinomial},
    {"aten::native_dropout", "", dropout},
    {"aten::native_dropout_backward", "", dropout_backward},
    {"aten::poisson", "", drawn},
    {"aten::randperm", "", permutation<1>},
    {"aten::randperm", "generator", permutation<2>},
};

}  // namespace

std::span<const ShapeRow> random_rules() { return kRows; }

}  // namespace foregrad
