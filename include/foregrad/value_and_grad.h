// A function's value and its gradients in one call.
#pragma once

#include <c10/core/GradMode.h>

#include <concepts>
#include <type_traits>
#include <utility>
#include <vector>

#include "foregrad/compile.h"

namespace foregrad {

namespace detail {

/// The tensors that gradients are taken with respect to: arguments that require grad, parameters of
/// modules, and other tensors that require grad, each once.
std::vector<at::Tensor> tensors_to_differentiate(const Leaves& arguments,
                                                 const CompileOptions& options);

/// Takes the gradients of a scalar. Runs the compiled backward itself where nothing else lies
/// between the scalar and `wanted`, the autograd engine otherwise. Throws `c10::Error` if `loss`
/// isn't one number that requires grad.
std::vector<at::Tensor> gradients_of(const at::Tensor& loss, const std::vector<at::Tensor>& wanted);

}  // namespace detail

/// What `value_and_grad` makes.
template <class Fn>
class ValueAndGrad {
 public:
  ValueAndGrad(Fn fn, CompileOptions options)
      : options_(options), compiled_(std::move(fn), std::move(options)) {}

  /// Calls the function, compiled. Returns its result, detached, and the gradients of the result's
  /// first tensor, a scalar: of the arguments that require grad in their order, then of the
  /// parameters of `options.modules`, then of `options.tensors` that require grad; each tensor
  /// once. A gradient is undefined where eager's is. `grad()` of leaves stays as it was.
  template <class... Args>
  auto operator()(Args&&... args) const {
    using Result = std::decay_t<std::invoke_result_t<Fn&, Args&&...>>;
    static_assert(Tree<Result>,
                  "foregrad: the function's result is of a type that can't be walked for tensors.");
    detail::Leaves leaves;
    (visit_leaves(std::as_const(args), leaves), ...);
    const std::vector<at::Tensor> wanted = detail::tensors_to_differentiate(leaves, options_);
    const c10::AutoGradMode with_grad(true);
    Result result = compiled_(std::forward<Args>(args)...);
    at::Tensor loss;
    visit_leaves(result, [&]<class Leaf>(Leaf& leaf) {
      if constexpr (std::same_as<Leaf, at::Tensor>) {
        if (!loss.defined()) loss = leaf;
      }
    });
    std::vector<at::Tensor> gradients = detail::gradients_of(loss, wanted);
    visit_leaves(result, []<class Leaf>(Leaf& leaf) {
      if constexpr (std::same_as<Leaf, at::Tensor>) {
        if (leaf.defined() && leaf.grad_fn()) leaf = leaf.detach();
      }
    });
    return std::pair(std::move(result), std::move(gradients));
  }

  template <class... Args>
  bool warm_up(Args&&... args) const {
    const c10::AutoGradMode with_grad(true);
    return compiled_.warm_up(std::forward<Args>(args)...);
  }
  Report report() const { return compiled_.report(); }
  void invalidate() const { compiled_.invalidate(); }

 private:
  CompileOptions options_;
  Compiled<Fn> compiled_;
};

/// Makes a function that gives the value of `fn` and its gradients, both compiled.
template <class Fn>
ValueAndGrad<std::decay_t<Fn>> value_and_grad(Fn&& fn, CompileOptions options = {}) {
  return {std::forward<Fn>(fn), std::move(options)};
}

}  // namespace foregrad
