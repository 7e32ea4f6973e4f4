// Most kernels walk their tensors by a TensorIterator, which broadcasts the sizes and chooses the
// strides. What is left to say of each is which dtypes it takes and which it gives: a `Takes` and a
// `Gives`, and the places of its tensors among the arguments.
#include "ops/elementwise_shapes.h"

#include <ATen/native/TypeProperties.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/eq.h>

#include "ops/result_types.h"

namespace foregrad {

namespace {

/// Which dtypes of the tensors a rule covers.
enum class Takes : uint8_t {
  OneFloating,  // one of half, bfloat16, float, double
  Promoted,     // any, cast to the dtype that they promote to
  Real,         // any but complex, cast likewise
  RealNumbers,  // nor truth values
  Integers,     // cast likewise
};

enum class Gives : uint8_t {
  Common,    // the dtype that the kernel computes in
  Floating,  // the same, or the default dtype for integers
  Truth,
};

at::ScalarType common_dtype(std::initializer_list<at::Tensor> tensors) {
  at::native::ResultTypeState state = {};
  for (const at::Tensor& tensor : tensors)
    state = at::native::update_result_type_state(tensor, state);
  return at::native::result_type(state);
}

bool is_taken(Takes takes, std::initializer_list<at::Tensor> tensors, at::ScalarType common) {
  switch (takes) {
    case Takes::OneFloating: return have_one_floating_dtype(tensors);
    case Takes::Promoted:
      return !at::isComplexType(common) || common == at::kComplexFloat ||
             common == at::kComplexDouble;
    case Takes::Real: return !at::isComplexType(common);
    case Takes::RealNumbers: return common != at::kBool && !at::isComplexType(common);
    case Takes::Integers: return at::isIntegralType(common, false);
  }
  return false;
}

Results elementwise(Takes kind, Gives gives, std::initializer_list<at::Tensor> tensors) {
  at::ScalarType common = common_dtype(tensors);
  if (!is_taken(kind, tensors, common)) return std::nullopt;
  if (gives == Gives::Floating && at::isIntegralType(common, true))
    common = at::get_default_dtype_as_scalartype();
  const at::ScalarType dtype = gives == Gives::Truth ? at::kBool : common;
  return std::vector<at::Tensor>{iterated_result(tensors, common, dtype)};
}

/// The rule of a kernel that iterates over the tensors at these places.
template <Takes kTakes, Gives kGives, size_t... kPlaces>
Results iterated(Arguments args) {
  return elementwise(kTakes, kGives, {args[kPlaces].toTensor()...});
}

/// A number among the arguments, as the tensor without dimensions that kernels make of it.
at::Tensor wrapped(const at::Scalar& number) {
  at::Tensor tensor = at::empty({}, at::TensorOptions().dtype(number.type()).device(c10::kMeta));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

template <Takes kTakes, Gives kGives>
Results tensor_and_scalar(Arguments args) {
  return elementwise(kTakes, kGives, {args[0].toTensor(), wrapped(args[1].toScalar())});
}

template <Takes kTakes, Gives kGives>
Results scalar_and_tensor(Arguments args) {
  return elementwise(kTakes, kGives, {wrapped(args[0].toScalar()), args[1].toTensor()});
}

/// The kernel is that of `clamp_min`, but for truth values.
Results relu(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (self.scalar_type() == at::kBool || self.is_complex()) return std::nullopt;
  return std::vector<at::Tensor>{at::clamp_min(self, 0)};
}

Results like_self(Arguments args) {
  return std::vector<at::Tensor>{at::empty_like(args[0].toTensor())};
}

Results hardtanh(Arguments args) {
  const bool is_real = !args[1].toScalar().isComplex() && !args[2].toScalar().isComplex();
  if (!is_real || !is_real_floating(args[0].toTensor().scalar_type())) return std::nullopt;
  return like_self(args);
}

Results hardtanh_backward(Arguments args) {
  const bool is_real = !args[2].toScalar().isComplex() && !args[3].toScalar().isComplex();
  return is_real ? iterated<Takes::OneFloating, Gives::Common, 0, 1>(args) : std::nullopt;
}

/// The weight has been made to broadcast to the input.
Results prelu(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  const auto result = iterated<Takes::OneFloating, Gives::Common, 0, 1>(args);
  if (!result || result->front().sizes() != self.sizes()) return std::nullopt;
  return like_self(args);
}

Results prelu_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const at::Tensor& weight = args[2].toTensor();
  if (!have_one_floating_dtype({grad, self, weight})) return std::nullopt;
  const at::Tensor result = iterated_result({self, weight, grad}, self.scalar_type());
  return results(result, at::empty_like(result));
}

Results isinf(Arguments args) {
  const at::Tensor& self = args[0].toTensor();
  if (at::isIntegralType(self.scalar_type(), true)) {
    return std::vector<at::Tensor>{at::empty_like(self, self.options().dtype(at::kBool))};
  }
  if (!is_real_floating(self.scalar_type())) return std::nullopt;
  return std::vector<at::Tensor>{at::eq(iterated_result({self}, self.scalar_type()), 0)};
}

Results rsub(Arguments args) {
  const bool subtracts_truth = args[0].toTensor().scalar_type() == at::kBool ||
                               args[1].toTensor().scalar_type() == at::kBool;
  if (subtracts_truth || !args[2].toScalar().isIntegral(false)) return std::nullopt;
  return iterated<Takes::Promoted, Gives::Common, 1, 0>(args);
}

Results where(Arguments args) {
  const at::Tensor& condition = args[0].toTensor();
  if (condition.scalar_type() != at::kBool) return std::nullopt;
  const at::Tensor& self = args[1].toTensor();
  const at::Tensor& other = args[2].toTensor();
  const at::ScalarType dtype = common_dtype({self, other});
  const auto cast = [dtype](const at::Tensor& tensor) {
    return tensor.scalar_type() == dtype ? tensor : tensor.to(dtype);
  };
  // Only its layout counts.
  const at::Tensor laid_as_condition =
      at::empty_strided(condition.sizes(), condition.strides(), condition.options().dtype(dtype));
  return std::vector<at::Tensor>{
      iterated_result({laid_as_condition, cast(self), cast(other)}, dtype)};
}

/// Made of two real parts, or of a length and an angle.
Results complex_of(Arguments args) {
  const at::Tensor& first = args[0].toTensor();
  const at::ScalarType dtype = first.scalar_type();
  const bool is_covered =
      (dtype == at::kFloat || dtype == at::kDouble) && args[1].toTensor().scalar_type() == dtype;
  if (!is_covered) return std::nullopt;
  return results(iterated_result({first, args[1].toTensor()}, dtype, at::toComplexType(dtype)));
}

/// The gradient of what halves one dimension.
Results glu_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& self = args[1].toTensor();
  const auto dim = wrapped_dim(args[2].toInt(), self.dim());
  const bool is_covered =
      dim && self.dim() > 0 && have_one_floating_dtype({grad, self}) && self.numel() > 0 &&
      self.size(*dim) % 2 == 0 &&
      grad.sizes() == at::IntArrayRef(with_size(self.sizes(), *dim, self.size(*dim) / 2));
  if (!is_covered) return std::nullopt;
  return results(contiguous_result(self.sizes(), self));
}

using enum Takes;
using enum Gives;

constexpr ShapeRow kRows[] = {
    {"aten::__lshift__", "Scalar", tensor_and_scalar<Integers, Common>},
    {"aten::__lshift__", "Tensor", iterated<Integers, Common, 0, 1>},
    {"aten::__rshift__", "Scalar", tensor_and_scalar<Integers, Common>},
    {"aten::__rshift__", "Tensor", iterated<Integers, Common, 0, 1>},
    {"aten::_conj_physical", "", like_self},
    {"aten::_prelu_kernel", "", prelu},
    {"aten::_prelu_kernel_backward", "", prelu_backward},
    {"aten::abs", "", iterated<RealNumbers, Common, 0>},
    {"aten::angle", "", iterated<Real, Floating, 0>},
    {"aten::complex", "", complex_of},
    {"aten::floor_divide", "", iterated<RealNumbers, Common, 0, 1>},
    {"aten::glu_backward", "", glu_backward},
    {"aten::hardswish", "", iterated<OneFloating, Common, 0>},
    {"aten::hardswish_backward", "", iterated<OneFloating, Common, 0, 1>},
    {"aten::hardtanh", "", hardtanh},
    {"aten::hardtanh_backward", "", hardtanh_backward},
    {"aten::isinf", "", isinf},
    {"aten::isin", "Scalar_Tensor", leave_to_real_kernel},
    {"aten::isnan", "", iterated<Promoted, Truth, 0>},
    {"aten::logical_and", "", iterated<Promoted, Truth, 0, 1>},
    {"aten::logical_not", "", iterated<Promoted, Truth, 0>},
    {"aten::logical_or", "", iterated<Promoted, Truth, 0, 1>},
    {"aten::logical_xor", "", iterated<Promoted, Truth, 0, 1>},
    {"aten::logit", "", iterated<Real, Floating, 0>},
    {"aten::mish_backward", "", iterated<OneFloating, Common, 0, 1>},
    {"aten::nan_to_num", "", like_self},
    {"aten::polar", "", complex_of},
    {"aten::relu", "", relu},
    {"aten::remainder", "Scalar_Tensor", scalar_and_tensor<Real, Common>},
    {"aten::rsub", "Tensor", rsub},
    {"aten::where", "self", where},
};

}  // namespace

std::span<const ShapeRow> elementwise_rules() { return kRows; }

}  // namespace foregrad
