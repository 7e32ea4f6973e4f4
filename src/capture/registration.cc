// The front key takes a fallback: one kernel for all operators. The trace key needs a kernel for
// each operator that reaches it, since a bare fallback loses to CompositeExplicitAutograd kernels.
// Composites are taken apart above it, but for those that have a kernel for the CPU besides: eager
// calls that one. About 2,400 operators, some milliseconds once.
#include "capture/registration.h"

#include <torch/library.h>

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "capture/in_place_writes.h"
#include "capture/keys.h"
#include "capture/library_writes.h"
#include "capture/recorder.h"
#include "capture/trace_handler.h"
#include "ops/functional_variant.h"

namespace foregrad {

namespace {

using Names = std::vector<c10::OperatorName>;

struct ByName {
  bool operator()(const c10::OperatorName& a, const c10::OperatorName& b) const {
    return std::tie(a.name, a.overload_name) < std::tie(b.name, b.overload_name);
  }
};

/// Operators that came or went since the last look. The dispatcher tells of them while it holds its
/// own lock, under which no kernel can be registered: they wait here until a trace begins.
class News final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& op) override { note(added_, op); }
  void onOperatorDeregistered(const c10::OperatorHandle& op) override { note(removed_, op); }

  Names take_added() { return take(added_); }
  Names take_removed() { return take(removed_); }

 private:
  void note(Names& names, const c10::OperatorHandle& op) {
    std::lock_guard lock(mutex_);
    names.push_back(op.operator_name());
  }
  Names take(Names& names) {
    std::lock_guard lock(mutex_);
    return std::exchange(names, {});
  }

  std::mutex mutex_;
  Names added_;
  Names removed_;
};

class Registrations {
 public:
  Registrations() {
    auto news = std::make_unique<News>();
    news_ = news.get();
    // The dispatcher tells a new listener of every operator that is already there.
    listener_ = c10::Dispatcher::singleton().addRegistrationListener(std::move(news));
    catch_up();
  }

  /// Registers the handler for new operators and returns how many have it.
  size_t catch_up() {
    std::lock_guard lock(mutex_);
    for (const auto& name : news_->take_removed()) kernels_.erase(name);
    // Functional variants are defined on the way.
    for (Names added = news_->take_added(); !added.empty(); added = news_->take_added())
      for (const auto& name : added) add(name);
    return kernels_.size();
  }

 private:
  void add(const c10::OperatorName& name) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || kernels_.contains(name)) return;
    if (op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
        !op->hasKernelForDispatchKey(c10::DispatchKey::CPU))
      return;
    std::vector<c10::RegistrationHandleRAII>& kernels = kernels_[name];
    const auto handle = [&](c10::DispatchKey key, c10::KernelFunction kernel) {
      kernels.push_back(c10::Dispatcher::singleton().registerImpl(
          name, key, std::move(kernel), std::nullopt, nullptr, "registered by Foregrad"));
    };
    handle(kTraceKey, c10::KernelFunction::makeFromBoxedFunction<&handle_traced_operator>());
    if (needs_functional_variant(*op)) {
      functional_variant(*op);
      handle(c10::DispatchKey::Functionalize,
             c10::KernelFunction::makeFromBoxedFunction<&handle_library_write>());
    }
  }

  std::mutex mutex_;
  News* news_ = nullptr;  // owned by the dispatcher
  c10::RegistrationHandleRAII listener_{[] {}};
  std::map<c10::OperatorName, std::vector<c10::RegistrationHandleRAII>, ByName> kernels_;
};

/// Never destroyed: the dispatcher outlives this library's statics.
Registrations& registrations() {
  static Registrations* const all = new Registrations;
  return *all;
}

const size_t kRegisteredAtLoad = registrations().catch_up();

}  // namespace

size_t registered_operators() {
  keep_in_place_writes();  // defines operators
  return registrations().catch_up();
}

TORCH_LIBRARY_IMPL(_, DeferredInit, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&handle_front_operator>());
}

}  // namespace foregrad
