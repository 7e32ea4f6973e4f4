// How a function is compiled.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace foregrad {

/// What happens to a call that can't be compiled.
enum class Policy {
  Eager,   // it runs eagerly; the first time with a warning, each time counted in the report
  Refuse,  // it throws `c10::Error` that says why
};

/// A module whose parameters and buffers the function may use: a `shared_ptr`, or a holder such as
/// `torch::nn::Linear`. Made implicitly, so that both can stand in a braced list.
class ModuleRef {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  template <class M>
  requires std::is_base_of_v<torch::nn::Module, M> ModuleRef(std::shared_ptr<M> module)
      : module_(std::move(module)) {}
  template <class M>
  ModuleRef(const torch::nn::ModuleHolder<M>& holder) : module_(holder.ptr()) {}
  // NOLINTEND(google-explicit-constructor)

  const std::shared_ptr<torch::nn::Module>& get() const { return module_; }

 private:
  std::shared_ptr<torch::nn::Module> module_;
};

/// Under which autocast state the backward of a compiled call runs.
struct BackwardAutocast {
  enum class State {
    AsCalled,   // the one that backward is called under, as in eager
    AsForward,  // the one of the call
    Off,
    On,
  };
  State state = State::AsCalled;
  at::ScalarType dtype = at::kBFloat16;  // of `On`
};

struct Backend;

struct CompileOptions {
  /// Modules that the function uses: their parameters and buffers become inputs, their `training`
  /// flags are guarded.
  std::vector<ModuleRef> modules{};
  /// Other tensors that the function reaches by capture. One that is declared nowhere is used with
  /// a warning, or refused.
  std::vector<at::Tensor> tensors{};
  Policy policy = Policy::Eager;
  /// How many specialisations are kept; the least recently used goes first.
  std::size_t max_specialisations = 64;
  BackwardAutocast backward_autocast{};
  /// Compilers of one's own, and what else may be put in place of Foregrad's: `foregrad/aot.h`.
  std::shared_ptr<const Backend> backend{};
};

}  // namespace foregrad
