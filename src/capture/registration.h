// Puts the handlers on their dispatch keys.
#pragma once

#include <c10/util/Exception.h>

#include <cstddef>

namespace foregrad {

/// Returns how many operators have the trace key's handler, after registering it for those defined
/// since the last call. Handlers are registered when the library loads; each trace calls this as it
/// begins.
size_t registered_operators();

/// While it lives, libtorch does not warn of kernels that take the place of its own.
class QuietRegistration {
 private:
  struct Ignore final : c10::WarningHandler {
    void process(const c10::Warning& /*warning*/) override {}
  };
  Ignore ignore_;
  c10::WarningUtils::WarningHandlerGuard guard_{&ignore_};
};

}  // namespace foregrad
