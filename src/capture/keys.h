// The dispatch keys that tracing uses, and the thread-local sets that each level of a trace runs
// under.
//
// From the top: the *front key* sees each operator that the user's function calls, above autograd.
// Autograd and functionalization are libtorch's own. The *trace key* sees what is left below them:
// functional operators, views and factories. The choice of keys is made here and nowhere else;
// `self_check` says when a libtorch has taken one of them.
#pragma once

#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <ATen/FunctionalTensorWrapper.h>

namespace foregrad {

/// Reserved by libtorch for code outside its core, above autograd.
inline constexpr c10::DispatchKey kFrontKey = c10::DispatchKey::DeferredInit;

/// A functionality key that libtorch keeps for a device that lives out of tree; no kernel in
/// libtorch uses it.
inline constexpr c10::DispatchKey kTraceKey = c10::DispatchKey::FPGA;

inline constexpr c10::DispatchKeySet kTracingKeys({kFrontKey, kTraceKey,
                                                   c10::DispatchKey::Functionalize});

/// While it lives, operators on this thread are traced. BackendSelect is excluded, since it would
/// redispatch factory calls with only the computed backend's key, past the trace key: real,
/// uninitialised tensors and no node.
class TracingScope {
 public:
  enum class Level {
    Recording,  // the user's function runs: the front key sees its operators
    Replaying,  // a recording is replayed: only the trace key sees operators
  };
  explicit TracingScope(Level level) : keys_(included(level), excluded()), reapply_views_(true) {}

 private:
  static c10::DispatchKeySet included(Level level) {
    auto keys = c10::impl::tls_local_dispatch_key_set().included_ |
                c10::DispatchKeySet({kTraceKey, c10::DispatchKey::Functionalize});
    return level == Level::Recording ? keys | c10::DispatchKeySet(kFrontKey)
                                     : keys - c10::DispatchKeySet(kFrontKey);
  }
  static c10::DispatchKeySet excluded() {
    return c10::impl::tls_local_dispatch_key_set().excluded_ |
           c10::DispatchKeySet(c10::DispatchKey::BackendSelect);
  }
  c10::impl::ForceDispatchKeyGuard keys_;
  // Functionalization gives views of functional values, not copies: a graph keeps eager's strides.
  at::functionalization::impl::FunctionalizationReapplyViewsGuard reapply_views_;
};

/// While it lives, operators on this thread run as if no trace was on.
class OutsideTracingScope {
 public:
  OutsideTracingScope() : keys_(included(), excluded()) {}

 private:
  static c10::DispatchKeySet included() {
    return c10::impl::tls_local_dispatch_key_set().included_ - kTracingKeys;
  }
  static c10::DispatchKeySet excluded() {
    return (c10::impl::tls_local_dispatch_key_set().excluded_ -
            c10::DispatchKeySet(c10::DispatchKey::BackendSelect)) |
           kTracingKeys;
  }
  c10::impl::ForceDispatchKeyGuard keys_;
};

/// While it lives, operators on this thread run below every level of tracing and below autograd, as
/// if no trace was on.
class BelowTracingScope {
 public:
  BelowTracingScope()
      : autograd_(c10::autograd_dispatch_keyset |
                  c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView)) {}

 private:
  OutsideTracingScope outside_;
  c10::impl::ExcludeDispatchKeyGuard autograd_;
};

/// While it lives, the front key does not see operators on this thread.
class BelowFrontScope {
 public:
  BelowFrontScope() : key_(c10::DispatchKeySet(kFrontKey)) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard key_;
};

}  // namespace foregrad
