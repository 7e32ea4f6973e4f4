// For authors of compiler backends: graphs of a function's forward and backward, and a place for
// compilers of one's own.
//
// A graph (`graph/graph.h`) is functional: its nodes are dispatcher operators, none of which writes
// its arguments, in an order in which they can run. `print_graph` (`graph/printer.h`) writes it,
// `interpret` (`graph/interpreter.h`) runs it, `push_arguments` and `take_results` (`graph/call.h`)
// call one node.
#pragma once

#include <memory>
#include <utility>

#include "foregrad/compile.h"
#include "foregrad/export.h"
#include "graph/backend.h"
#include "graph/graph.h"

namespace foregrad {

/// Makes a compiled function whose graphs a backend compiles. What the backend leaves empty is
/// Foregrad's own.
template <class Fn>
Compiled<std::decay_t<Fn>> aot_function(Fn&& fn, Backend backend, CompileOptions options = {}) {
  options.backend = std::make_shared<const Backend>(std::move(backend));
  return {std::forward<Fn>(fn), std::move(options)};
}

/// Makes a compiled module whose graphs a backend compiles. `module`: a holder, or a `shared_ptr`.
template <class Module>
auto aot_module(Module&& module, Backend backend, CompileOptions options = {}) {
  options.backend = std::make_shared<const Backend>(std::move(backend));
  return compile(std::forward<Module>(module), std::move(options));
}

namespace detail {

Graph graph_of_call(const Leaves& leaves, BoundFunction& function, const CompileOptions& options);

}  // namespace detail

/// Traces a function for arguments like these, under the grad mode of now: a graph from arguments
/// and captured tensors to updated inputs and all tensors of the result. Gradients that the
/// function takes itself are part of it. Nothing is written. Throws `c10::Error` for what can't be
/// traced.
template <class Fn, class... Args>
Graph make_graph(Fn&& fn, Args&&... args) {
  return detail::with_bound(
      fn,
      [](const detail::Leaves& leaves, detail::BoundFunction& bound) {
        return detail::graph_of_call(leaves, bound, {.policy = Policy::Refuse});
      },
      std::forward<Args>(args)...);
}

}  // namespace foregrad
