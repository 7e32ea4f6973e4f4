// Puts the handlers on their dispatch keys.
#pragma once

#include <cstddef>

namespace foregrad {

/// Returns how many operators have the trace key's handler, after registering it for those defined
/// since the last call. Handlers are registered when the library loads; each trace calls this as it
/// begins.
size_t registered_operators();

}  // namespace foregrad
