// The backwards of one compiled graph, by layout of the tangents.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/backward_node.h"

namespace foregrad {

/// Makes backwards; each called once for each layout, under a lock. Throws `c10::Error` for a
/// layout in which backward would need what was not saved.
struct BackwardMaker {
  std::function<Backward(const TangentLayout&)> backward;
  std::function<DifferentiableBackward(const TangentLayout&, const std::vector<bool>&)>
      differentiable;
};

/// Keeps what was made. May be used from several threads.
class Backwards final : public BackwardSource {
 public:
  /// `tangents`: all of them, as they were traced. `traced`: the backward for those under
  /// `autocast`, if it is there.
  Backwards(std::vector<TensorType> tangents, BackwardMaker maker, std::optional<Backward> traced,
            const AutocastState& autocast = {});

  const Backward& backward_for(const TangentLayout& layout) override;
  const DifferentiableBackward& differentiable_for(const TangentLayout& layout,
                                                   const std::vector<bool>& requires_grad) override;

 private:
  TangentLayout as_traced(const TangentLayout& layout) const;

  std::vector<TensorType> tangents_;
  BackwardMaker maker_;
  std::mutex mutex_;
  std::map<TangentLayout, Backward> backwards_;
  std::map<std::pair<TangentLayout, std::vector<bool>>, DifferentiableBackward> differentiable_;
};

}  // namespace foregrad
