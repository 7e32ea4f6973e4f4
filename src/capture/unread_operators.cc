#include "capture/unread_operators.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "capture/infer.h"
#include "capture/keys.h"
#include "capture/trace_tensor.h"
#include "graph/call.h"
#include "graph/refusal.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

/// Tells nodes apart whose kernels may be implemented for one and not for the other.
std::string kind_of(const Graph& graph, const Node& node) {
  std::string kind = operator_text(node.op);
  for_each_read(node, [&](ValueId value) {
    const TensorType& type = graph.type(value);
    kind += c10::toString(type.dtype);
    if (type.numel() == 0) kind += " without elements";
  });
  return kind;
}

}  // namespace

void check_unread_operators(const Graph& graph, const std::vector<uint32_t>& nodes) {
  thread_local std::set<std::string> known;
  for (const uint32_t i : nodes) {
    const Node& node = graph.nodes[i];
    if (node.phase != Phase::Forward || is_certain_view(node.op)) continue;
    std::string kind = kind_of(graph, node);
    if (known.contains(kind)) continue;
    torch::jit::Stack stack;
    push_arguments(stack, node.op, node.args,
                   [&](ValueId value) { return make_meta(graph.type(value)); });
    try {
      BelowTracingScope below;
      run_on_zeros(node.op, stack);
    } catch (const c10::Error& error) {
      // It may be an error of zeros alone: eager knows.
      throw Refusal(fmt::format("nothing reads the result of `{}`, which may throw: {}",
                                operator_text(node.op), error.what_without_backtrace()));
    }
    known.insert(std::move(kind));
  }
}

}  // namespace foregrad
