// What a function can change outside of operator calls while it is recorded: modes, generators,
// gradients and data of the caller's tensors. Each is noticed and put back.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "graph/recording.h"

namespace foregrad {

/// Returns the thread's modes.
ModeState current_modes();

/// While it lives, the thread autocasts as it says, without a cache of cast weights: that would
/// hold stand-ins.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state);
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;
  ~AutocastScope();

 private:
  AutocastState before_;
  bool cache_;
};

/// While it lives, the thread is in no-grad mode instead of inference mode, if it was in that one.
/// Autograd sees the same operators, and stand-ins have version counters and views, as the caller's
/// tensors may have.
class OutsideInferenceMode {
 public:
  OutsideInferenceMode() {
    if (!c10::InferenceMode::is_enabled()) return;
    normal_.emplace(false);
    no_grad_.emplace(false);
  }
  bool was_inside() const { return normal_.has_value(); }

 private:
  std::optional<c10::InferenceMode> normal_;
  std::optional<c10::AutoGradMode> no_grad_;
};

/// While it lives, anomaly mode looks for no NaN: gradients of stand-ins have no elements.
class WithoutNanChecks {
 public:
  WithoutNanChecks() {
    if (checked_) torch::autograd::AnomalyMode::set_enabled(true, /*check_nan=*/false);
  }
  WithoutNanChecks(const WithoutNanChecks&) = delete;
  WithoutNanChecks& operator=(const WithoutNanChecks&) = delete;
  ~WithoutNanChecks() {
    if (checked_) torch::autograd::AnomalyMode::set_enabled(true, /*check_nan=*/true);
  }

 private:
  bool checked_ = torch::autograd::AnomalyMode::is_enabled() &&
                  torch::autograd::AnomalyMode::should_check_nan();
};

/// Restores the thread's modes. Autocast's cache of cast weights is off while it lives: it would
/// hold stand-ins.
class ModeGuard {
 public:
  ModeGuard();
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;
  ~ModeGuard();
  bool changed() const { return !(current_modes() == modes_); }

 private:
  ModeState modes_ = current_modes();
  bool autocast_cache_;
};

/// Keeps a generator's state over a scope.
class GeneratorStateGuard {
 public:
  explicit GeneratorStateGuard(at::Generator generator) : generator_(std::move(generator)) {
    std::lock_guard lock(generator_.mutex());
    state_ = generator_.get_state();
  }
  GeneratorStateGuard(const GeneratorStateGuard&) = delete;
  GeneratorStateGuard& operator=(const GeneratorStateGuard&) = delete;
  ~GeneratorStateGuard() {
    std::lock_guard lock(generator_.mutex());
    generator_.set_state(state_);
  }

 private:
  at::Generator generator_;
  at::Tensor state_;
};

/// The default generator's state when tracing begins: no traced operator draws from it.
class GeneratorWatch {
 public:
  GeneratorWatch();
  /// Puts a changed state back, and refuses: only eager can do again what the function did to it.
  void refuse_changes() const;

 private:
  at::Tensor state_;
};

/// The caller's tensors as they were when the recording first saw them.
class TensorWatch {
 public:
  TensorWatch() = default;
  TensorWatch(const TensorWatch&) = delete;
  TensorWatch& operator=(const TensorWatch&) = delete;
  ~TensorWatch();

  void watch_grad(const at::Tensor& tensor);
  void watch_data(const at::Tensor& tensor);
  void watch_hooks(const at::Tensor& tensor);
  /// Puts back what was changed, and refuses if anything was.
  void refuse_changes();

 private:
  bool restore_grads();
  bool restore_data();
  bool restore_hooks();

  struct HookCount {
    at::Tensor tensor;
    size_t count = 0;
  };
  std::vector<std::pair<at::Tensor, at::Tensor>> grads_;  // leaves, and what their `grad()` was
  std::vector<std::pair<at::Tensor, c10::intrusive_ptr<c10::TensorImpl>>>
      data_;  // and what they were: storage, sizes, keys
  std::vector<HookCount> hooks_;
};

}  // namespace foregrad
