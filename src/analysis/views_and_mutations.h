// View and mutation metadata from one recording.
#pragma once

#include "graph/metadata.h"
#include "graph/recording.h"

namespace foregrad {

/// Says for each input what the call does to it, for each output what it is, and which effects lead
/// there, from what was seen in the recorded run. Pure. Throws `Refusal`, naming the input or
/// output, for what the runtime can't reproduce.
ViewAndMutationMeta analyze_views_and_mutations(const Recording& recording);

}  // namespace foregrad
