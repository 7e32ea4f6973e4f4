#include "ops/declared_effects.h"

#include <mutex>
#include <unordered_set>

namespace foregrad {

namespace {

struct Declared {
  std::mutex mutex;
  std::unordered_set<c10::OperatorName> names;
};

/// Never destroyed: operators may be asked about while the process ends.
Declared& declared() {
  static auto* all = new Declared;
  return *all;
}

}  // namespace

void note_declared_effect(const c10::OperatorName& name) {
  const std::lock_guard lock(declared().mutex);
  declared().names.insert(name);
}

bool is_effect_declared(const c10::OperatorName& name) {
  const std::lock_guard lock(declared().mutex);
  return declared().names.contains(name);
}

}  // namespace foregrad
