// Puts the handlers on their dispatch keys.
#pragma once

#include <cstddef>

namespace foregrad {

/// Returns how many operators have the trace key's handler. The handlers are registered when the
/// library loads; operators that are defined later get theirs as they are defined.
size_t registered_operators();

}  // namespace foregrad
