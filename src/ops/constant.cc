#include "ops/constant.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>
#include <torch/library.h>

#include <algorithm>

namespace foregrad {

namespace {

at::Tensor empty_on(at::IntArrayRef size, at::ScalarType dtype, std::optional<at::Device> device) {
  return at::empty(size, at::TensorOptions(dtype).device(device.value_or(at::kCPU)));
}

template <class Number>
at::Tensor constant(c10::ArrayRef<Number> values, at::IntArrayRef size, at::ScalarType dtype,
                    std::optional<at::Device> device) {
  at::Tensor result = empty_on(size, dtype, device);
  if (result.is_meta()) return result;
  at::Tensor numbers =
      at::empty({static_cast<int64_t>(values.size())}, c10::CppTypeToScalarType<Number>::value);
  std::copy(values.begin(), values.end(), numbers.template data_ptr<Number>());
  (result.is_complex() ? at::view_as_real(result) : result).view(-1).copy_(numbers);
  return result;
}

template <class Number>
c10::List<Number> numbers_of(const at::Tensor& elements) {
  const at::Tensor flat =
      elements.reshape(-1).to(c10::CppTypeToScalarType<Number>::value).contiguous();
  const auto* first = flat.template const_data_ptr<Number>();
  c10::List<Number> numbers;
  for (int64_t i = 0; i < flat.numel(); ++i) numbers.push_back(first[i]);
  return numbers;
}

TORCH_LIBRARY(foregrad, library) {
  using c10::DispatchKey;
  library.def(
      "constant.float(float[] values, int[] size, ScalarType dtype, Device? device=None) -> Tensor",
      torch::dispatch(DispatchKey::CompositeExplicitAutograd, &constant<double>));
  library.def(
      "constant.int(int[] values, int[] size, ScalarType dtype, Device? device=None) -> Tensor",
      torch::dispatch(DispatchKey::CompositeExplicitAutograd, &constant<int64_t>));
}

}  // namespace

ConstantCall constant_call(const at::Tensor& elements) {
  const bool is_real = elements.is_floating_point() || elements.is_complex();
  c10::IValue values;
  if (is_real) {
    values = numbers_of<double>(elements.is_complex() ? at::view_as_real(elements) : elements);
  } else {
    values = numbers_of<int64_t>(elements);
  }
  return {.op = c10::Dispatcher::singleton().findSchemaOrThrow("foregrad::constant",
                                                               is_real ? "float" : "int"),
          .args = {std::move(values), elements.sizes().vec(),
                   static_cast<int64_t>(elements.scalar_type()), c10::IValue()}};
}

}  // namespace foregrad
