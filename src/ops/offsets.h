// What a recording's graphs depend on of where in their storages the inputs begin.
#pragma once

#include "graph/recording.h"

namespace foregrad {

/// Whether they hold for one offset of each input: an operator takes an absolute offset into the
/// storage, or one that needs aligned elements is called while an input is not aligned.
bool takes_offsets(const Recording& recording);

/// Whether they hold for inputs only that begin at a multiple of 16 bytes, the widest element.
bool needs_alignment(const Recording& recording);

}  // namespace foregrad
