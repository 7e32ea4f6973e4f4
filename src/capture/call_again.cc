#include "capture/call_again.h"

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include "capture/keys.h"
#include "capture/view_history.h"
#include "capture/written_layout.h"
#include "graph/call.h"

namespace foregrad {

namespace {

/// Sets the modes that an operator was recorded under; the thread's own come back when it dies.
class ReplayedModes {
 public:
  explicit ReplayedModes(const ModeState& modes) : grad_(modes.grad_mode) {
    at::autocast::set_autocast_enabled(at::kCPU, modes.autocast_enabled);
    at::autocast::set_autocast_dtype(at::kCPU, modes.autocast_dtype);
  }
  ReplayedModes(const ReplayedModes&) = delete;
  ReplayedModes& operator=(const ReplayedModes&) = delete;
  ~ReplayedModes() {
    at::autocast::set_autocast_enabled(at::kCPU, enabled_);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_);
  }

 private:
  bool enabled_ = at::autocast::is_autocast_enabled(at::kCPU);
  at::ScalarType dtype_ = at::autocast::get_autocast_dtype(at::kCPU);
  c10::AutoGradMode grad_;
};

uint64_t call_under(const ModeState& state, const RecordedOp& op, std::vector<at::Tensor>& values) {
  const ReplayedModes modes(state);
  torch::jit::Stack stack;
  uint64_t history = 0;
  push_arguments(stack, op.op, op.args, [&](ValueId id) {
    fold_history(history, values[id.index]);
    return values[id.index];
  });
  const WrittenLayouts layouts(op.op, stack);
  op.op.callBoxed(&stack);
  {
    BelowFrontScope below;
    layouts.keep();
    follow_views(stack);
  }
  take_results(stack, op.results,
               [&](ValueId id, at::Tensor&& tensor) { values[id.index] = std::move(tensor); });
  return history;
}

}  // namespace

uint64_t call_again(const RecordedOp& op, std::vector<at::Tensor>& values) {
  return call_under(op.modes, op, values);
}

void call_in_backward(const RecordedOp& op, std::vector<at::Tensor>& values) {
  ModeState modes = op.modes;
  modes.grad_mode = modes.grad_mode && c10::GradMode::is_enabled();
  call_under(modes, op, values);
}

}  // namespace foregrad
