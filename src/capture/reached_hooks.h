// Through which tensors gradients come to the hooks of a replay.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/node.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace foregrad {

/// A hook that a history leads to, with no seen tensor between.
struct ReachedHook {
  uint32_t hook = 0;
  /// Which of the roots leads to it; nothing: a seen tensor that is none, or the hook is on the
  /// very tensor.
  std::optional<size_t> root{};
  bool operator==(const ReachedHook&) const = default;
};

/// `hooks`: by the node that they are on. `roots`: histories that gradients come from. `seen`: of
/// the tensors that the caller sees.
std::vector<ReachedHook> find_reached_hooks(
    const std::multimap<const torch::autograd::Node*, uint32_t>& hooks,
    const torch::autograd::edge_list& roots, const torch::autograd::edge_list& seen);

}  // namespace foregrad
