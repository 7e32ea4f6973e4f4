#include "capture/call_again.h"

#include <c10/core/GradMode.h>

#include "capture/keys.h"
#include "capture/outside_state.h"
#include "capture/view_history.h"
#include "capture/written_layout.h"
#include "graph/call.h"

namespace foregrad {

namespace {

uint64_t call_under(const ModeState& state, const RecordedOp& op, std::vector<at::Tensor>& values) {
  const AutocastScope autocast({state.autocast_enabled, state.autocast_dtype});
  const c10::AutoGradMode grad_mode(state.grad_mode);
  torch::jit::Stack stack;
  uint64_t history = 0;
  push_arguments(stack, op.op, op.args, [&](ValueId id) {
    fold_history(history, values[id.index]);
    return values[id.index];
  });
  const WrittenLayouts layouts(op.op, stack);
  follow_views(stack);
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
  const ModeState now = current_modes();
  modes.grad_mode = modes.grad_mode && now.grad_mode;
  if (!modes.autocast_enabled) {
    modes.autocast_enabled = now.autocast_enabled;
    modes.autocast_dtype = now.autocast_dtype;
  }
  call_under(modes, op, values);
}

}  // namespace foregrad
