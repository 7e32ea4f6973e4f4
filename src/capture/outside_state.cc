#include "capture/outside_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/equal.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/variable.h>

#include <mutex>

#include "graph/refusal.h"

namespace foregrad {

namespace {

namespace functional = at::functionalization::impl;

/// Null if none was ever registered.
torch::autograd::hooks_list* hooks_of(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta ? meta->cpp_hooks_list_.get() : nullptr;
}

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

}  // namespace

ModeState current_modes() {
  return {.grad_mode = c10::GradMode::is_enabled(),
          .inference_mode = c10::InferenceMode::is_enabled(),
          .autocast_enabled = at::autocast::is_autocast_enabled(at::kCPU),
          .autocast_dtype = at::autocast::get_autocast_dtype(at::kCPU)};
}

AutocastScope::AutocastScope(const AutocastState& state)
    : before_{at::autocast::is_autocast_enabled(at::kCPU),
              at::autocast::get_autocast_dtype(at::kCPU)},
      cache_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
  at::autocast::set_autocast_enabled(at::kCPU, state.enabled);
  at::autocast::set_autocast_dtype(at::kCPU, state.dtype);
}

AutocastScope::~AutocastScope() {
  at::autocast::set_autocast_enabled(at::kCPU, before_.enabled);
  at::autocast::set_autocast_dtype(at::kCPU, before_.dtype);
  at::autocast::set_autocast_cache_enabled(cache_);
}

ModeGuard::ModeGuard() : autocast_cache_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
}

ModeGuard::~ModeGuard() {
  c10::GradMode::set_enabled(modes_.grad_mode);
  at::autocast::set_autocast_enabled(at::kCPU, modes_.autocast_enabled);
  at::autocast::set_autocast_dtype(at::kCPU, modes_.autocast_dtype);
  at::autocast::set_autocast_cache_enabled(autocast_cache_);
}

GeneratorWatch::GeneratorWatch() : state_(generator_state()) {}

void GeneratorWatch::refuse_changes() const {
  if (at::equal(state_, generator_state())) return;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  {
    std::lock_guard lock(generator.mutex());
    generator.set_state(state_);
  }
  throw Refusal(
      "the function sets the default generator's seed or state. Set it outside of the function.");
}

TensorWatch::~TensorWatch() {
  restore_grads();
  restore_data();
  restore_hooks();
}

void TensorWatch::watch_grad(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.is_leaf() && tensor.requires_grad())
    grads_.emplace_back(tensor, tensor.grad());
}

void TensorWatch::watch_data(const at::Tensor& tensor) {
  const auto* impl = tensor.unsafeGetTensorImpl();
  data_.emplace_back(tensor, impl->shallow_copy_and_detach(impl->version_counter(),
                                                           /*allow_tensor_metadata_change=*/true));
}

void TensorWatch::watch_hooks(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.requires_grad()) return;
  const auto* hooks = hooks_of(tensor);
  hooks_.push_back({tensor, hooks ? hooks->size() : 0});
}

/// Takes out the hooks that were registered on the caller's tensors; says whether there were any.
bool TensorWatch::restore_hooks() {
  bool restored = false;
  for (const auto& [tensor, count] : hooks_) {
    auto* hooks = hooks_of(tensor);
    if (!hooks || hooks->size() <= count) continue;
    hooks->resize(count);
    restored = true;
  }
  return restored;
}

/// Takes gradients that `backward()` left in the caller's tensors out of them, and puts back those
/// that were taken away; says whether there were any. Gradients that another thread left there
/// stay.
bool TensorWatch::restore_grads() {
  bool restored = false;
  for (const auto& [tensor, before] : grads_) {
    const at::Tensor& grad = tensor.grad();
    const bool is_traced = grad.defined() && functional::isFunctionalTensor(grad);
    const bool was_reset = !grad.defined() && before.defined();
    if (!is_traced && !was_reset) continue;
    tensor.mutable_grad() = before;
    restored = true;
  }
  return restored;
}

/// Puts back what `set_data` replaced in the caller's tensors; says whether there was any.
bool TensorWatch::restore_data() {
  bool restored = false;
  for (const auto& [tensor, before] : data_) {
    auto* now = tensor.unsafeGetTensorImpl();
    const bool is_same = now->key_set() == before->key_set() && now->sizes() == before->sizes() &&
                         now->strides() == before->strides() && now->dtype() == before->dtype() &&
                         now->unsafe_storage().unsafeGetStorageImpl() ==
                             before->unsafe_storage().unsafeGetStorageImpl();
    if (is_same) continue;
    now->shallow_copy_from(before);
    restored = true;
  }
  return restored;
}

void TensorWatch::refuse_changes() {
  if (restore_hooks()) {
    throw Refusal(
        "the function registers a hook on a captured tensor, which stays on it after the call and "
        "another one joins it at each call. Register it outside of the function.");
  }
  if (restore_data()) {
    throw Refusal(
        "the function gives a captured tensor other data (`set_data`), which is not supported yet. "
        "Expected writes in place, "
        "or `set_data` outside of it.");
  }
  if (restore_grads()) {
    throw Refusal(
        "`backward()` inside the function, or a `grad()` that it resets, is not supported yet. "
        "Expected gradients taken by "
        "`torch::autograd::grad`, or `backward()` on the function's result outside of it.");
  }
}

}  // namespace foregrad
