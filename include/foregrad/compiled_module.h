// The type of compiled modules. `foregrad/compile.h` makes them.
#pragma once

#include <c10/util/Exception.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "foregrad/compiled.h"
#include "foregrad/options.h"
#include "foregrad/report.h"

namespace foregrad {

namespace detail {

/// A module's `forward` as a function. The result's type is `forward`'s own, its default arguments
/// too; where `forward` is a template, as `torch::nn::Sequential`'s, the default of its template
/// arguments.
template <class M>
struct Forward {
  std::shared_ptr<M> module;

  template <class... Args>
  auto operator()(Args&&... args) const
      -> decltype(std::declval<M&>().forward(std::forward<Args>(args)...)) {
    return module->forward(std::forward<Args>(args)...);
  }
};

}  // namespace detail

/// A compiled module: called as its `forward` is, and through `->` still the module, with its
/// parameters, `to()`, `train()` and `eval()`. What they change holds at the next call. Copies
/// share the module and the specialisations.
template <class M>
class CompiledModule {
 public:
  /// Throws `c10::Error` if there is no module.
  CompiledModule(std::shared_ptr<M> module, CompileOptions options)
      : compiled_({module}, with(std::move(options), module)), module_(std::move(module)) {}

  /// Calls `forward`, compiled for arguments like these; see `Compiled`.
  template <class... Args>
  decltype(auto) operator()(Args&&... args) const {
    return compiled_(std::forward<Args>(args)...);
  }

  /// Compiles for calls with arguments like these without making one; see `Compiled`.
  template <class... Args>
  bool warm_up(Args&&... args) const {
    return compiled_.warm_up(std::forward<Args>(args)...);
  }

  M* operator->() const { return module_.get(); }
  M& operator*() const { return *module_; }
  /// Returns the module, for what takes a `shared_ptr`: containers, `torch::save`.
  const std::shared_ptr<M>& module() const { return module_; }

  /// Says what was compiled, when and why, and what fell back to eager.
  Report report() const { return compiled_.report(); }

  /// Drops all specialisations.
  void invalidate() const { compiled_.invalidate(); }

 private:
  static CompileOptions with(CompileOptions options, const std::shared_ptr<M>& module) {
    TORCH_CHECK(module != nullptr,
                "foregrad: `compile`: expected a module, got an empty pointer. Construct the "
                "module first.");
    options.modules.emplace_back(module);
    return options;
  }

  Compiled<detail::Forward<M>> compiled_;
  std::shared_ptr<M> module_;
};

}  // namespace foregrad
