// Exports a function's forward and backward as graphs that stand by themselves.
#pragma once

#include <c10/core/GradMode.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "foregrad/compile.h"
#include "graph/graph.h"

namespace foregrad {

/// An input of an exported graph.
struct ExportedInput {
  enum class Kind { Parameter, Buffer, Argument, Tangent };
  Kind kind;
  std::string name;  // of the parameter or buffer; `argument_0`; what the tangent is of
  bool operator==(const ExportedInput&) const = default;
};

/// An output of an exported graph.
struct ExportedOutput {
  enum class Kind {
    Updated,   // what `name`, a buffer, parameter or argument, holds after the call
    Result,    // `result_0`, a tensor that the function returns
    Loss,      // the one that gradients are taken of
    Gradient,  // with respect to `name`
  };
  Kind kind;
  std::string name;
  bool operator==(const ExportedOutput&) const = default;
};

struct Exported {
  Graph graph;
  std::vector<ExportedInput> inputs;    // of the graph, in order
  std::vector<ExportedOutput> outputs;  // of the graph, in order
};

/// Writes the signature, then the graph.
std::string to_text(const Exported& exported);

namespace detail {

struct ExportRequest {
  enum class Kind { Joint, Training, Inference };
  Kind kind = Kind::Joint;
  std::size_t loss = 0;  // of `Training`: which tensor of the result
  std::shared_ptr<torch::nn::Module> module{};
};

Exported export_call(const ExportRequest& request, const Leaves& leaves, BoundFunction& function,
                     const CompileOptions& options);
/// Calls `use(leaves, bound)` with the function bound to the arguments.
template <class Fn, class Use, class... Args>
auto with_bound(Fn& fn, Use&& use, Args&&... args) {
  Leaves leaves;
  (visit_leaves(std::as_const(args), leaves), ...);
  BoundCall<Fn, Args&&...> bound(fn, std::tuple<Args&&...>(std::forward<Args>(args)...));
  return use(leaves, bound);
}

}  // namespace detail

/// Exports forward and backward of a function as one graph that stands by itself: from arguments
/// and tangents of the results to updated arguments, results, and gradients of the arguments that
/// require grad. Throws `c10::Error` with the reason for what such a graph can't carry: results or
/// arguments that share memory, arguments whose sizes change or that require grad and are written,
/// captured tensors, generators.
template <class Fn, class... Args>
Exported aot_export_joint(Fn&& fn, Args&&... args) {
  return detail::with_bound(
      fn,
      [](const detail::Leaves& leaves, detail::BoundFunction& bound) {
        return detail::export_call({}, leaves, bound, {.policy = Policy::Refuse});
      },
      std::forward<Args>(args)...);
}

/// What `aot_export_module` exports.
struct ExportOptions {
  bool with_gradients = false;  // of the parameters and arguments, with respect to the loss
  std::size_t loss = 0;         // which tensor of the result is the loss; a scalar
};

/// Exports a module's `forward` as a graph that stands by itself: from parameters, buffers and
/// arguments to updated buffers, results and, `with_gradients`, the gradients of one of the
/// results, the only one that may require grad. Without gradients the module is traced without grad
/// mode. `module`: a holder, or a `shared_ptr`. Throws as `aot_export_joint`.
template <class Module, class... Args>
Exported aot_export_module(const Module& module, const ExportOptions& options, Args&&... args) {
  auto shared = [&] {
    if constexpr (detail::ModuleHolder<Module>) {
      return module.ptr();
    } else {
      return module;
    }
  }();
  using Kind = detail::ExportRequest::Kind;
  const detail::ExportRequest request{
      .kind = options.with_gradients ? Kind::Training : Kind::Inference,
      .loss = options.loss,
      .module = shared};
  detail::Forward<typename decltype(shared)::element_type> forward{shared};
  const CompileOptions compile_options{.modules = {shared}, .policy = Policy::Refuse};
  const c10::AutoGradMode mode(options.with_gradients);
  return detail::with_bound(
      forward,
      [&](const detail::Leaves& leaves, detail::BoundFunction& bound) {
        return detail::export_call(request, leaves, bound, compile_options);
      },
      std::forward<Args>(args)...);
}

}  // namespace foregrad
