// Which operators of a recording must be called again on the caller's tensors.
#pragma once

#include <vector>

#include "graph/metadata.h"
#include "graph/recording.h"

namespace foregrad {

struct FoundEffects {
  std::vector<BaseInfo> bases;
  std::vector<Effect> effects;
  std::vector<OutputOrigin> origins;  // of the wanted values, in order
  uint32_t slot_count = 0;
};

/// Finds the effects that leave the inputs as eager would and make the wanted values, which share
/// memory with inputs or with each other. Pure.
FoundEffects find_effects(const Recording& recording, const std::vector<ValueId>& wanted);

}  // namespace foregrad
