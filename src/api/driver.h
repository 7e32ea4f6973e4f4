// The driver: the only place that knows the order of the rooms.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/compilation.h"
#include "foregrad/detail/callable.h"

namespace foregrad::detail {

/// Looks up, compiles and runs the specialisations of one function.
class Driver {
 public:
  explicit Driver(CompileOptions options) : options_(std::move(options)) {}

  CallResult call(const Leaves& leaves, BoundFunction& function);
  bool warm_up(const Leaves& leaves, BoundFunction& function);
  void count_fallback(const std::string& reason);
  void refuse_from_now_on(const Leaves& leaves, const std::string& reason);
  Report report() const;
  void invalidate();

 private:
  using Entry = std::shared_ptr<Compilation>;

  Entry find(const Leaves& leaves);
  Entry compile(const Leaves& leaves, BoundFunction& function);
  void check_recording(const Entry& entry, const Leaves& leaves, BoundFunction& function);
  void add(Entry entry);
  Entry find_or_compile(const Leaves& leaves, BoundFunction& function);
  CallResult run_compiled(const Leaves& leaves, BoundFunction& function);
  std::string why_recompile(const Leaves& leaves) const;

  CompileOptions options_;
  mutable std::mutex mutex_;    // of all below
  std::vector<Entry> entries_;  // most recently used first
  std::vector<std::string> recompiles_;
  std::vector<std::string> fallback_reasons_;
  std::set<const void*> warned_captures_;
  std::size_t eager_calls_ = 0;
  std::size_t surprises_ = 0;  // recordings that differed from the one compiled
  bool is_state_dependent_ = false;
};

}  // namespace foregrad::detail
