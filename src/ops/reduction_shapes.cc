// Sums have a Meta kernel: where dimensions are reduced, it tells the sizes, and has the errors for
// dimensions that are out of range or named twice.
#include "ops/reduction_shapes.h"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>

#include "ops/result_types.h"

namespace foregrad {

namespace {

bool is_real_number(const at::Tensor& tensor) {
  return !tensor.is_complex() && tensor.scalar_type() != at::kBool;
}

/// Integers are added up in the widest.
at::ScalarType summed_dtype(const at::Tensor& self) {
  return at::isIntegralType(self.scalar_type(), true) ? at::kLong : self.scalar_type();
}

at::Tensor scalar_result(const at::Tensor& like, at::ScalarType dtype) {
  return contiguous_result({}, like, dtype);
}

/// Dimensions that are absent are all of them.
at::Tensor reduced(const at::Tensor& self, const c10::IValue& dims, bool keepdim,
                   at::ScalarType dtype) {
  at::OptionalIntArrayRef given;
  std::vector<int64_t> list;
  if (dims.isInt()) list = {dims.toInt()};
  if (dims.isIntList()) list = dims.toIntVector();
  if (!dims.isNone()) given = list;
  return at::sum(self, given, keepdim, dtype);
}

/// One of the elements, of those that are ordered.
Results element(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (self.is_complex() || self.numel() == 0) return std::nullopt;
  return results(scalar_result(self, self.scalar_type()));
}

Results median(Arguments args) {
  return is_real_number(args[0].toTensor()) ? element(args) : std::nullopt;
}

Results product(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (!args[1].isNone()) return std::nullopt;
  return results(scalar_result(self, summed_dtype(self)));
}

Results trace(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (self.dim() != 2 || !is_real_floating(self.scalar_type())) return std::nullopt;
  return results(scalar_result(self, self.scalar_type()));
}

bool has_deviation(const at::Tensor& self, const c10::IValue& correction) {
  if (!correction.isNone() && correction.toScalar().isComplex()) return false;
  return is_real_floating(self.scalar_type()) || self.scalar_type() == at::kComplexFloat ||
         self.scalar_type() == at::kComplexDouble;
}

Results deviation(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (!has_deviation(self, args[2])) return std::nullopt;
  return results(reduced(self, args[1], args[3].toBool(), at::toRealValueType(self.scalar_type())));
}

Results deviation_and_mean(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (!has_deviation(self, args[2])) return std::nullopt;
  const at::Tensor mean = reduced(self, args[1], args[3].toBool(), self.scalar_type());
  return results(contiguous_result(mean.sizes(), mean, at::toRealValueType(self.scalar_type())),
                 mean);
}

Results nansum(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (self.is_complex() || !args[3].isNone()) return std::nullopt;
  return results(reduced(self, args[1], args[2].toBool(), summed_dtype(self)));
}

Results count_nonzero(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  return results(reduced(self, args[1], false, at::kLong));
}

Results logsumexp(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (!is_real_floating(self.scalar_type()) || args[1].toIntVector().empty()) return std::nullopt;
  return results(reduced(self, args[1], args[2].toBool(), self.scalar_type()));
}

/// A softmax that is zero where all is masked.
Results safe_softmax(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const auto dim = wrapped_dim(args[1].toInt(), self.dim());
  const bool is_covered =
      dim && is_real_floating(self.scalar_type()) && args[2].isNone() && self.numel() > 0;
  if (!is_covered) return std::nullopt;
  const at::Tensor softmax = at::_softmax(self, *dim, false);
  const at::Tensor masked = reduced(self, *dim, true, self.scalar_type());
  return results(iterated_result({masked, at::empty_like(softmax), softmax}, self.scalar_type()));
}

/// Values of one dimension, and where they were found.
Results found(const at::Tensor& self, int64_t dim, bool keepdim) {
  const auto place = wrapped_dim(dim, self.dim());
  if (!place || !is_real_number(self) || self.numel() == 0) return std::nullopt;
  const at::Tensor indices = reduced(self, *place, keepdim, at::kLong);
  return results(contiguous_result(indices.sizes(), self), indices);
}

Results found_along(Arguments args) {
  return found(args[0].toTensor(), args[1].toInt(), args[2].toBool());
}

Results kth_value(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const auto dim = wrapped_dim(args[2].toInt(), self.dim());
  const int64_t size = dim && self.dim() > 0 ? self.size(*dim) : 1;
  if (!dim || args[1].toInt() < 1 || args[1].toInt() > size) return std::nullopt;
  return found(self, *dim, args[3].toBool());
}

/// The extremes so far, and where they were found.
Results scanned(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (!wrapped_dim(args[1].toInt(), self.dim()) || self.is_complex()) return std::nullopt;
  return results(contiguous_result(self.sizes(), self),
                 contiguous_result(self.sizes(), self, at::kLong));
}

Results log_sum_scanned(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (!wrapped_dim(args[1].toInt(), self.dim()) || !is_real_floating(self.scalar_type()))
    return std::nullopt;
  return results(contiguous_result(self.sizes(), self));
}

constexpr ShapeRow kRows[] = {
    {"aten::_logcumsumexp", "", log_sum_scanned},
    {"aten::_safe_softmax", "", safe_softmax},
    {"aten::count_nonzero", "", count_nonzero},
    {"aten::count_nonzero", "dim_IntList", count_nonzero},
    {"aten::cummax", "", scanned},
    {"aten::cummin", "", scanned},
    {"aten::kthvalue", "", kth_value},
    {"aten::logcumsumexp", "", log_sum_scanned},
    {"aten::logsumexp", "", logsumexp},
    {"aten::max", "", element},
    {"aten::median", "", median},
    {"aten::median", "dim", found_along},
    {"aten::min", "", element},
    {"aten::mode", "", found_along},
    {"aten::nanmedian", "", median},
    {"aten::nanmedian", "dim", found_along},
    {"aten::nansum", "", nansum},
    {"aten::prod", "", product},
    {"aten::std", "correction", deviation},
    {"aten::std_mean", "correction", deviation_and_mean},
    {"aten::trace", "", trace},
    {"aten::var", "correction", deviation},
    {"aten::var_mean", "correction", deviation_and_mean},
};

}  // namespace

std::span<const ShapeRow> reduction_rules() { return kRows; }

}  // namespace foregrad
