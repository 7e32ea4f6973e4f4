// The type of compiled functions. `foregrad/compile.h` makes them.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "foregrad/detail/bound_call.h"
#include "foregrad/detail/callable.h"
#include "foregrad/options.h"
#include "foregrad/report.h"
#include "foregrad/tree.h"

namespace foregrad {

/// A compiled function: called as the function is, with the same result. Copies share the
/// specialisations. May be called from several threads, if the function may be.
template <class Fn>
class Compiled {
 public:
  Compiled(Fn fn, CompileOptions options)
      : fn_(std::make_shared<Fn>(std::move(fn))), compiler_(std::move(options)) {}

  /// Calls the function, compiled for arguments like these. Arguments and result are tensors,
  /// optionals, numbers, strings, vectors, arrays, pairs, tuples, maps, and structs with
  /// `members()`. Throws what the function throws, and `c10::Error` under `Policy::Refuse` for what
  /// can't be compiled.
  template <class... Args>
  decltype(auto) operator()(Args&&... args) const {
    static_assert(std::is_invocable_v<Fn&, Args&&...>,
                  "foregrad: the compiled function can't be called with arguments of these types "
                  "and number.");
    using Result = std::invoke_result_t<Fn&, Args&&...>;
    static_assert((Tree<Args> && ...),
                  "foregrad: an argument is of a type that can't be walked for tensors. Add `auto "
                  "members() { return "
                  "std::tie(a, b); }` to your struct, or capture the value.");
    detail::Leaves leaves;
    (visit_leaves(std::as_const(args), leaves), ...);
    detail::BoundCall<Fn, Args&&...> bound(*fn_,
                                           std::tuple<Args&&...>(std::forward<Args>(args)...));
    detail::CallResult called = compiler_.call(leaves, bound);
    if (!called.is_compiled)
      return run_eagerly<Result>(called.trace_error, leaves, std::forward<Args>(args)...);
    if constexpr (!std::is_void_v<Result>) {
      static_assert(
          Tree<Result>,
          "foregrad: the function's result is of a type that can't be walked for tensors.");
      return detail::with_tensors(*static_cast<const std::decay_t<Result>*>(called.prototype.get()),
                                  std::move(called.tensors));
    }
  }

  /// Compiles for calls with arguments like these, with the grad mode of now, without making one:
  /// nothing is written, no random number is drawn. Returns whether such calls will be compiled.
  /// Throws as a call does under `Policy::Refuse`.
  template <class... Args>
  bool warm_up(Args&&... args) const {
    static_assert(std::is_invocable_v<Fn&, Args&&...>,
                  "foregrad: the compiled function can't be called with arguments of these types "
                  "and number.");
    detail::Leaves leaves;
    (visit_leaves(std::as_const(args), leaves), ...);
    detail::BoundCall<Fn, Args&&...> bound(*fn_,
                                           std::tuple<Args&&...>(std::forward<Args>(args)...));
    return compiler_.warm_up(leaves, bound);
  }

  /// Says what was compiled, when and why, and what fell back to eager.
  Report report() const { return compiler_.report(); }

  /// Drops all specialisations.
  void invalidate() const { compiler_.invalidate(); }

 private:
  template <class Result, class... Args>
  Result run_eagerly(const std::string& trace_error, const detail::Leaves& leaves,
                     Args&&... args) const {
    struct CountOnSuccess {
      const detail::Compiler& compiler;
      const std::string& trace_error;
      const detail::Leaves& leaves;
      int exceptions = std::uncaught_exceptions();
      ~CountOnSuccess() {
        if (!trace_error.empty() && std::uncaught_exceptions() == exceptions)
          compiler.count_fallback(trace_error, leaves);
      }
    } count{compiler_, trace_error, leaves};
    return (*fn_)(std::forward<Args>(args)...);
  }

  std::shared_ptr<Fn> fn_;
  detail::Compiler compiler_;
};

}  // namespace foregrad
