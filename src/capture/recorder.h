// Records one run of the user's function: the front key's side of a trace.
//
// The function runs on stand-ins: functional wrappers over trace tensors, with autograd on top. The
// front key sees each operator that the function calls, before composites are taken apart. Tensors
// that the function reaches by capture arrive as real tensors; each is *lifted*: swapped, by
// identity, for a stand-in that becomes an input.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/recording.h"

namespace foregrad {

struct RecordRequest {
  /// The user's tensors, in the order of the arguments. Undefined ones stay undefined.
  std::vector<at::Tensor> arguments;
  /// Runs the user's function on stand-ins for the arguments and returns the tensors of its result,
  /// in order.
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> run;
  /// Tensors that the function is known to reach by capture, in order; others are found as it runs.
  std::vector<at::Tensor> captured{};
  /// How the arguments, the captured tensors and their bases lie, by `gather_inputs` of them.
  Arrangement arrangement{};
  /// Tensors that the function may reach by capture, as far as they are known before it runs: what
  /// it does to them outside of operator calls is noticed and undone.
  std::vector<at::Tensor> declared{};
  /// Called for each captured tensor with the operator that first used it; may throw to refuse it.
  std::function<void(const at::Tensor&, const std::string& first_operator)> on_capture;
};

struct RecordResult {
  Recording recording;
  std::map<std::string, uint32_t> last_resort_shapes;  // operator and how often
};

/// Runs the function once and records it. No operator touches data: the caller's tensors, the
/// generators and the modes are as before, also when the function throws. What the function throws
/// reaches the caller unchanged. Throws `Refusal` for programs that a recording can't hold.
RecordResult record(const RecordRequest& request);

/// Whether this thread is recording or replaying: a compiled function called now runs as part of
/// that trace.
bool is_tracing();

/// Handles every operator that reaches the front key.
void handle_front_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                           torch::jit::Stack* stack);

}  // namespace foregrad
