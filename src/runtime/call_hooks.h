// Hooks that a call registers on tensors that its caller sees.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <vector>

#include "graph/metadata.h"

namespace foregrad {

class HookOfCall;

/// The hooks of one call.
class CallHooks {
 public:
  explicit CallHooks(const ViewAndMutationMeta& meta);
  ~CallHooks();
  CallHooks(const CallHooks&) = delete;
  CallHooks& operator=(const CallHooks&) = delete;

  /// Registers those on histories that inputs come with; before the effects.
  void register_first(std::span<const at::Tensor> inputs);
  /// Registers the others, has tensors retain their gradients, and gives the hooks what they read.
  void finish(std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs);

 private:
  const ViewAndMutationMeta& meta_;
  std::vector<std::shared_ptr<HookOfCall>> hooks_;
};

}  // namespace foregrad
