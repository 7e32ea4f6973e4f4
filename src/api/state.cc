#include "foregrad/state.h"

#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <mutex>
#include <unordered_set>

namespace foregrad::detail {

namespace {

/// The tensors of all states that live.
class Register {
 public:
  static Register& instance() {
    static auto* const all = new Register;  // states may outlive static objects
    return *all;
  }
  void add(const c10::TensorImpl* state) {
    std::lock_guard lock(mutex_);
    states_.insert(state);
  }
  void remove(const c10::TensorImpl* state) {
    std::lock_guard lock(mutex_);
    states_.erase(state);
  }
  bool contains(const c10::TensorImpl* state) {
    std::lock_guard lock(mutex_);
    return states_.contains(state);
  }

 private:
  std::mutex mutex_;
  std::unordered_set<const c10::TensorImpl*> states_;
};

}  // namespace

std::shared_ptr<const at::Tensor> make_state(const c10::Scalar& value, at::ScalarType dtype) {
  const auto remove = [](const at::Tensor* state) {
    Register::instance().remove(state->unsafeGetTensorImpl());
    delete state;
  };
  std::shared_ptr<const at::Tensor> state(
      new at::Tensor(at::full({}, value, at::TensorOptions().dtype(dtype))), remove);
  Register::instance().add(state->unsafeGetTensorImpl());
  return state;
}

void set_state(const at::Tensor& state, const c10::Scalar& value) {
  const at::NoGradGuard no_grad;
  at::Tensor(state).fill_(value);
}

bool is_state(const at::Tensor& tensor) {
  return Register::instance().contains(tensor.unsafeGetTensorImpl());
}

}  // namespace foregrad::detail
