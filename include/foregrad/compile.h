// Compiles differentiable functions and modules ahead of their calls.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "foregrad/compiled.h"
#include "foregrad/compiled_module.h"
#include "foregrad/options.h"

namespace foregrad {

namespace detail {

template <class T>
concept ModuleHolder = torch::detail::is_module_holder<std::remove_cvref_t<T>>::value;

template <class T>
inline constexpr bool kIsModulePointer = false;
template <class M>
inline constexpr bool kIsModulePointer<std::shared_ptr<M>> =
    std::derived_from<M, torch::nn::Module>;

template <class T>
concept ModulePointer = kIsModulePointer<std::remove_cvref_t<T>>;

}  // namespace detail

/// Makes a compiled function. Nothing is compiled before the first call with each kind of
/// arguments.
template <class Fn>
requires(!detail::ModuleHolder<Fn> && !detail::ModulePointer<Fn>)
    Compiled<std::decay_t<Fn>> compile(Fn&& fn, CompileOptions options = {}) {
  return {std::forward<Fn>(fn), std::move(options)};
}

/// Makes a compiled module of a holder such as `torch::nn::Linear`: its `forward`, compiled. The
/// module need not stand in `options.modules`. Throws `c10::Error` for an empty holder.
template <detail::ModuleHolder Holder>
auto compile(Holder&& holder, CompileOptions options = {}) {
  using Module = typename std::remove_cvref_t<Holder>::ContainedType;
  return CompiledModule<Module>(holder.ptr(), std::move(options));
}

/// Makes a compiled module of a `shared_ptr` to a class derived from `torch::nn::Module` that has a
/// `forward`.
template <std::derived_from<torch::nn::Module> M>
CompiledModule<M> compile(std::shared_ptr<M> module, CompileOptions options = {}) {
  return {std::move(module), std::move(options)};
}

}  // namespace foregrad
