#include "api/driver.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <optional>

#include "api/describe.h"
#include "api/log.h"
#include "capture/recorder.h"
#include "capture/transform_layers.h"
#include "graph/refusal.h"
#include "graph/tensor_type.h"

namespace foregrad::detail {

namespace {

/// Tracing threw something that is no refusal: most likely the user's own error, which eager throws
/// as it should be.
struct TraceError {
  std::exception_ptr cause;
  std::string what;
};

/// Runs what traces the user's function; all that it throws but a refusal becomes a `TraceError`.
template <class Trace>
auto traced(Trace&& trace) {
  try {
    return trace();
  } catch (const Refusal&) {
    throw;
  } catch (const std::exception& error) {
    throw TraceError{std::current_exception(), fmt::format("tracing failed: {}", error.what())};
  } catch (...) {
    throw TraceError{std::current_exception(), "tracing failed"};
  }
}

std::string undeclared_text(const at::Tensor& tensor, const std::string& op) {
  return fmt::format(
      "a tensor `{}` that was not declared is captured by the function; `{}` uses it first. "
      "Expected captured tensors to "
      "belong to a module or list given to `compile`. Declare it: `compile(fn, {{.modules = "
      "{{net}}}})` or "
      "`{{.tensors = {{tensor}}}}`, or pass it as an argument.",
      to_text(type_of(tensor)), op);
}

}  // namespace

Driver::Entry Driver::find(const Leaves& leaves) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i]->is_valid_for(leaves)) continue;
    std::rotate(entries_.begin(), entries_.begin() + static_cast<ptrdiff_t>(i),
                entries_.begin() + static_cast<ptrdiff_t>(i) + 1);
    return entries_.front();
  }
  return nullptr;
}

std::string Driver::why_recompile(const Leaves& leaves) const {
  std::lock_guard lock(mutex_);
  return entries_.empty() ? std::string() : entries_.front()->why_invalid(leaves);
}

Driver::Entry Driver::compile(const Leaves& leaves, BoundFunction& function) {
  const auto on_undeclared = [this](const at::Tensor& tensor, const std::string& op) {
    if (options_.policy == Policy::Refuse) throw Refusal(undeclared_text(tensor, op));
    std::lock_guard lock(mutex_);
    if (warned_captures_.insert(tensor.unsafeGetTensorImpl()).second) {
      spdlog::warn("foregrad: {}", undeclared_text(tensor, op));
    }
  };
  return traced([&] { return compile_call(leaves, function, options_, on_undeclared); });
}

void Driver::add(Entry entry) {
  std::lock_guard lock(mutex_);
  entries_.insert(entries_.begin(), std::move(entry));
  if (entries_.size() <= std::max<size_t>(options_.max_specialisations, 1)) return;
  spdlog::warn(
      "foregrad: more than {} specialisations; the least recently used is dropped. Last reason to "
      "compile: {}",
      options_.max_specialisations, recompiles_.empty() ? "none" : recompiles_.back());
  entries_.pop_back();
}

void Driver::count_fallback(const std::string& reason) {
  std::lock_guard lock(mutex_);
  ++eager_calls_;
  if (std::ranges::find(fallback_reasons_, reason) == fallback_reasons_.end()) {
    spdlog::warn("foregrad: a call runs eagerly: {}", reason);
    fallback_reasons_.push_back(reason);
  } else {
    log(LogTopic::Fallbacks, fmt::format("a call runs eagerly: {}", reason));
  }
}

void Driver::check_recording(const Entry& entry, const Leaves& leaves, BoundFunction& function) {
  const auto record_again = [&]() -> Recorded {
    return traced([&] {
      return record_call(leaves, function, options_, [](const at::Tensor&, const std::string&) {});
    });
  };
  std::optional<Recorded> again;
  try {
    again = record_again();
  } catch (const Refusal& refusal) {
    {
      std::lock_guard lock(mutex_);
      std::erase(entries_, entry);
    }
    refuse_from_now_on(leaves, refusal.what_without_backtrace());
    return;
  }
  const auto difference = first_difference(*entry->first_recording, again->recording);
  if (!difference) return;
  std::lock_guard lock(mutex_);
  std::erase(entries_, entry);
  is_state_dependent_ = ++surprises_ > 1;
  const auto& ops = again->recording.ops;
  const std::string what = fmt::format(
      "the function did something else than when it was compiled, from its operator {} on: {}. "
      "Values that are not tensors "
      "are part of the compiled function; pass what changes as an argument.",
      *difference,
      *difference < ops.size() ? to_text(ops[*difference]) : "its inputs or outputs differ");
  spdlog::warn("foregrad: {}", what);
  recompiles_.push_back(what);
}

Driver::Entry Driver::find_or_compile(const Leaves& leaves, BoundFunction& function) {
  if (Entry entry = find(leaves)) return entry;
  const std::string why = why_recompile(leaves);
  if (!why.empty()) log(LogTopic::Recompiles, why);
  Entry entry;
  try {
    entry = compile(leaves, function);
    if (is_any_logged()) log_compilation(describe(*entry));
  } catch (const Refusal& refusal) {
    entry = refuse_calls_like(leaves, options_, refusal.what_without_backtrace());
  }
  if (!why.empty()) {
    std::lock_guard lock(mutex_);
    recompiles_.push_back(why);
  }
  add(entry);
  return entry;
}

CallResult Driver::run_compiled(const Leaves& leaves, BoundFunction& function) {
  Entry entry = find_or_compile(leaves, function);
  const size_t calls = entry->calls.fetch_add(1) + 1;
  // Calls 2, 4, 8, … record again: so seldom that it costs nothing in the long run.
  if (entry->refusal.empty() && calls > 1 && std::has_single_bit(calls)) {
    check_recording(entry, leaves, function);
    entry = find_or_compile(leaves, function);
  }
  if (!entry->refusal.empty()) throw Refusal(entry->refusal);
  return {.is_compiled = true,
          .tensors = entry->specialisation->run(leaves.tensors),
          .prototype = entry->prototype};
}

CallResult Driver::call(const Leaves& leaves, BoundFunction& function) {
  if (is_tracing()) return {};  // part of the trace that is going on
  try {
    if (is_transforming()) {
      throw Refusal(
          "the compiled function is called inside a function transform. Expected the transformed "
          "function to be compiled: `compile(vmap(fn))`");
    }
    {
      std::lock_guard lock(mutex_);
      if (is_state_dependent_)
        throw Refusal("the function's operators depend on state that is no tensor");
    }
    return run_compiled(leaves, function);
  } catch (const Refusal& refusal) {
    if (options_.policy == Policy::Refuse) throw;
    count_fallback(refusal.what_without_backtrace());
  } catch (const TraceError& error) {
    if (options_.policy == Policy::Refuse) std::rethrow_exception(error.cause);
    return {.trace_error = error.what};
  }
  return {};
}

bool Driver::warm_up(const Leaves& leaves, BoundFunction& function) {
  try {
    const Entry entry = find_or_compile(leaves, function);
    if (!entry->refusal.empty() && options_.policy == Policy::Refuse) throw Refusal(entry->refusal);
    return entry->refusal.empty();
  } catch (const TraceError& error) {
    if (options_.policy == Policy::Refuse) std::rethrow_exception(error.cause);
    return false;
  }
}

void Driver::refuse_from_now_on(const Leaves& leaves, const std::string& reason) {
  add(refuse_calls_like(leaves, options_, reason));
}

Report Driver::report() const {
  std::lock_guard lock(mutex_);
  Report report{.specialisations = {},
                .eager_calls = eager_calls_,
                .fallback_reasons = fallback_reasons_,
                .recompiles = recompiles_};
  for (const Entry& entry : entries_) {
    if (!entry->refusal.empty()) continue;
    report.specialisations.push_back(describe(*entry));
  }
  return report;
}

void Driver::invalidate() {
  std::lock_guard lock(mutex_);
  entries_.clear();
  surprises_ = 0;
  is_state_dependent_ = false;
}

Compiler::Compiler(CompileOptions options)
    : driver_(std::make_shared<Driver>(std::move(options))) {}
CallResult Compiler::call(const Leaves& leaves, BoundFunction& function) const {
  return driver_->call(leaves, function);
}
bool Compiler::warm_up(const Leaves& leaves, BoundFunction& function) const {
  return driver_->warm_up(leaves, function);
}
void Compiler::count_fallback(const std::string& trace_error, const Leaves& leaves) const {
  driver_->count_fallback(trace_error);
  driver_->refuse_from_now_on(leaves, trace_error);
}
Report Compiler::report() const { return driver_->report(); }
void Compiler::invalidate() const { driver_->invalidate(); }

}  // namespace foregrad::detail
