// Autocast's state in a scope.
#pragma once

#include <ATen/autocast_mode.h>

namespace foregrad::testing {

/// While it lives, the thread autocasts to bfloat16, or not at all.
class Autocast {
 public:
  explicit Autocast(bool enabled) : before_(at::autocast::is_autocast_enabled(at::kCPU)) {
    at::autocast::set_autocast_enabled(at::kCPU, enabled);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, before_);
    at::autocast::clear_cache();
  }

 private:
  bool before_;
};

}  // namespace foregrad::testing
