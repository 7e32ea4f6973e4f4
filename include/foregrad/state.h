// Numbers that a compiled function reads anew at each call.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <type_traits>

namespace foregrad {

namespace detail {

/// Makes a zero-dimensional tensor that compiled functions may use without its being declared.
std::shared_ptr<const at::Tensor> make_state(const c10::Scalar& value, at::ScalarType dtype);
void set_state(const at::Tensor& state, const c10::Scalar& value);
/// Whether the tensor belongs to a `State`.
bool is_state(const at::Tensor& tensor);

}  // namespace detail

/// A number that a compiled function may capture and that may change from call to call without
/// compiling again: a learning rate, a temperature, a step of a schedule. In the function it is a
/// zero-dimensional tensor of dtype `T` (`float64` for `double`), to operators as any other. Copies
/// share the number. A plain captured number is part of the compiled function instead.
template <class T>
requires std::is_arithmetic_v<T>
class State {
 public:
  explicit State(T value)
      : tensor_(detail::make_state(value, c10::CppTypeToScalarType<T>::value)) {}

  /// Not during a call, nor between a call and its backward, which may need the number as it was.
  const State& operator=(T value) const {
    detail::set_state(*tensor_, value);
    return *this;
  }

  /// The number of now. Not inside a compiled function, where the number is not known.
  T value() const { return tensor_->template item<T>(); }

  const at::Tensor& tensor() const { return *tensor_; }
  // NOLINTNEXTLINE(google-explicit-constructor): `x * beta` with a tensor `x`
  operator const at::Tensor&() const { return *tensor_; }

 private:
  std::shared_ptr<const at::Tensor> tensor_;
};

}  // namespace foregrad
