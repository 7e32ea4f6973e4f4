// View and mutation metadata from one recording.
#pragma once

#include "graph/metadata.h"
#include "graph/recording.h"

namespace foregrad {

/// Says for each input what the call does to it and for each output what it is, from what was seen
/// in the recorded run. Pure. Throws `Refusal`, naming the input or output, for effects that the
/// runtime can't reproduce yet.
ViewAndMutationMeta analyze_views_and_mutations(const Recording& recording);

}  // namespace foregrad
