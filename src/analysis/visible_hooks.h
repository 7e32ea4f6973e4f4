// Hooks of a function on tensors that its caller sees: the call registers them on those very
// tensors.
//
// A hook is called once with all that flows to its tensor, in each backward, also in one of
// gradients of gradients: there it comes through several nodes of the call and past them. So the
// tensor that a hook is on is made a hidden output, with a node of its own, and so is what the hook
// reads. A hook on a history that its tensor loses by a write is refused.
#pragma once

#include <memory>
#include <vector>

#include "graph/metadata.h"
#include "graph/recording.h"

namespace foregrad {

/// Finds the hooks on the inputs and outputs of the recording, in order. What they read must be
/// among these. Throws `Refusal` for those that can't be registered there. Pure.
std::vector<VisibleHook> find_visible_hooks(const Recording& recording);

/// Whether the hook reads or writes what the caller can write, so that no graph can hold it.
bool touches_seen_tensors(const Recording& recording, const RecordedHook& hook);

/// Returns the recording with the hidden outputs that its hooks need; itself if there are none.
/// Throws `Refusal` for hooks that no output can hold. Pure.
std::shared_ptr<const Recording> with_hidden_outputs(std::shared_ptr<const Recording> recording);

}  // namespace foregrad
