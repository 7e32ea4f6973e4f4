// Custom autograd functions that random programs call. Their backwards are not the derivatives of
// their forwards, so that no other can take their place. And hooks that they register.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

// NOLINTBEGIN(cppcoreguidelines-macro-usage): one text is both compiled and printed.
#define FOREGRAD_FUZZ_SOURCE(name, ...) \
  __VA_ARGS__                           \
  inline constexpr const char* name = #__VA_ARGS__;
// NOLINTEND(cppcoreguidelines-macro-usage)

namespace foregrad::cli::fuzz {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// clang-format off
FOREGRAD_FUZZ_SOURCE(kCustomFunctions,
struct Reversed : torch::autograd::Function<Reversed> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x * 2; }
  static variable_list backward(AutogradContext*, const variable_list& grads) {
    return {grads[0].neg()};
  }
};
struct Itself : torch::autograd::Function<Itself> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x; }
  static variable_list backward(AutogradContext*, const variable_list& grads) {
    return {grads[0] * 3};
  }
};
struct SavedInput : torch::autograd::Function<SavedInput> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x) {
    ctx->save_for_backward({x});
    return x.square();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {grads[0] * ctx->get_saved_variables()[0] * 3};
  }
};
struct SavedOutput : torch::autograd::Function<SavedOutput> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x) {
    at::Tensor y = x.sin();
    ctx->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {grads[0] * ctx->get_saved_variables()[0]};
  }
};
struct Pair : torch::autograd::Function<Pair> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& y) {
    ctx->save_for_backward({x, y});
    return {x * y, x + y};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list saved = ctx->get_saved_variables();
    return {(grads[0] * saved[1] + grads[1]).sum_to_size(saved[0].sizes()),
            (grads[0] * saved[0] - grads[1]).sum_to_size(saved[1].sizes())};
  }
};
struct Doubled : torch::autograd::Function<Doubled> {
  static at::Tensor forward(AutogradContext* ctx, at::Tensor x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, const variable_list& grads) {
    return {grads[0] * 5};
  }
};
)
FOREGRAD_FUZZ_SOURCE(kHooks,
template <class Hook>
at::Tensor hooked(const at::Tensor& x, Hook hook) {
  // The compiler refuses hooks on the caller's leaves. Gradients may come undefined.
  if (x.requires_grad() && !x.is_leaf()) {
    x.register_hook([hook](const at::Tensor& gradient) {
      return gradient.defined() ? hook(gradient) : gradient;
    });
  }
  return x;
}
inline at::Tensor doubling_hook(const at::Tensor& x) {
  return hooked(x, [](const at::Tensor& gradient) { return gradient * 2; });
}
inline at::Tensor relu_hook(const at::Tensor& x) {
  return hooked(x, [](const at::Tensor& gradient) { return gradient.relu(); });
}
inline at::Tensor silent_hook(const at::Tensor& x) {
  return hooked(x, [](const at::Tensor&) { return at::Tensor(); });
}
inline at::Tensor reading_hook(const at::Tensor& x, const at::Tensor& y) {
  return hooked(x, [y = y.detach()](const at::Tensor& gradient) { return gradient * y.sum(); });
}
)
// clang-format on

}  // namespace foregrad::cli::fuzz
