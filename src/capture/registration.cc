// The front key takes a fallback: one kernel for all operators. The trace key needs a kernel for
// each operator that has no CompositeImplicitAutograd kernel, since a bare fallback loses to
// CompositeExplicitAutograd kernels; composites are taken apart above it. About 2,400 operators,
// some milliseconds once.
#include "capture/registration.h"

#include <torch/library.h>

#include <list>
#include <map>

#include "capture/keys.h"
#include "capture/recorder.h"
#include "capture/trace_handler.h"

namespace foregrad {

namespace {

class Registrations final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& op) override {
    if (!op.hasSchema() || kernels_.contains(op.operator_name())) return;
    if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) return;
    kernels_.emplace(op.operator_name(),
                     c10::Dispatcher::singleton().registerImpl(
                         op.operator_name(), kTraceKey,
                         c10::KernelFunction::makeFromBoxedFunction<&handle_traced_operator>(),
                         std::nullopt, nullptr, "registered by Foregrad"));
  }
  void onOperatorDeregistered(const c10::OperatorHandle& op) override {
    kernels_.erase(op.operator_name());
  }
  size_t size() const { return kernels_.size(); }

 private:
  struct ByName {
    bool operator()(const c10::OperatorName& a, const c10::OperatorName& b) const {
      return std::tie(a.name, a.overload_name) < std::tie(b.name, b.overload_name);
    }
  };
  std::map<c10::OperatorName, c10::RegistrationHandleRAII, ByName> kernels_;
};

/// Never destroyed: the dispatcher outlives this library's statics.
Registrations& registrations() {
  static Registrations* const all = [] {
    auto* made = new Registrations;
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const auto& name : dispatcher.getAllOpNames()) {
      if (auto op = dispatcher.findSchema(name)) made->onOperatorRegistered(*op);
    }
    return made;
  }();
  return *all;
}

const size_t kRegisteredAtLoad = registrations().size();

}  // namespace

size_t registered_operators() { return registrations().size(); }

TORCH_LIBRARY_IMPL(_, DeferredInit, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&handle_front_operator>());
}

}  // namespace foregrad
