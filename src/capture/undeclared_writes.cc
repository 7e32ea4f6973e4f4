// `native_batch_norm` in training writes its running statistics, and its schema does not say so:
// functionalization would let the write fall through. Its functional twin is put in place of it at
// the Functionalize key, where libtorch has no kernel for it. As in eager, the write advances no
// version.
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/native_batch_norm.h>
#include <torch/library.h>

#include <tuple>

#include "capture/undeclared_writes.h"

namespace foregrad {

namespace {

namespace functional = at::functionalization::impl;
using OptionalTensor = std::optional<at::Tensor>;

at::Tensor inside(const OptionalTensor& tensor) {
  if (!tensor || !tensor->defined()) return {};
  if (!functional::isFunctionalTensor(*tensor)) return *tensor;
  functional::sync(*tensor);
  return functional::from_functional_tensor(*tensor);
}

void replace(const at::Tensor& wrapper, const at::Tensor& value) {
  TORCH_CHECK(functional::isFunctionalTensor(wrapper),
              "`aten::native_batch_norm`: running statistics that are not traced can't be updated "
              "in a trace");
  functional::replace_(wrapper, value);
  functional::commit_update(wrapper);
  functional::sync(wrapper);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm(
    const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
    const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
    double momentum, double eps) {
  const at::Tensor x = inside(input);
  const at::Tensor w = inside(weight);
  const at::Tensor b = inside(bias);
  const at::Tensor mean = inside(running_mean);
  const at::Tensor var = inside(running_var);
  const bool writes = training && mean.defined() && var.defined();
  std::tuple<at::Tensor, at::Tensor, at::Tensor> results;
  {
    at::AutoDispatchSkipFunctionalize below;
    if (writes) {
      auto [out, save_mean, save_invstd, new_mean, new_var] =
          at::_native_batch_norm_legit_functional(x, w, b, mean, var, training, momentum, eps);
      replace(*running_mean, new_mean);
      replace(*running_var, new_var);
      results = {out, save_mean, save_invstd};
    } else {
      results = at::native_batch_norm(x, w, b, mean, var, training, momentum, eps);
    }
  }
  const auto wrap = [](const at::Tensor& value) { return functional::to_functional_tensor(value); };
  return {wrap(std::get<0>(results)), wrap(std::get<1>(results)), wrap(std::get<2>(results))};
}

}  // namespace

void keep_undeclared_writes() {}

TORCH_LIBRARY_IMPL(aten, Functionalize, library) {
  library.impl("native_batch_norm", native_batch_norm);
}

}  // namespace foregrad
