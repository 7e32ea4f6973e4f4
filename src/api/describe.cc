#include "api/describe.h"

#include <fmt/format.h>

#include "graph/dot.h"
#include "graph/printer.h"

namespace foregrad::detail {

namespace {

std::string signature_text(const Compilation& made) {
  std::string text = to_text(made.meta);
  const auto list = [&](const char* what, const auto& entries) {
    text += what;
    for (const auto& entry : entries) text += " " + to_text(entry.role);
    text += "\n";
  };
  list("forward takes", made.forward.inputs);
  list("forward gives", made.forward.outputs);
  for (const Graph& backward : made.backwards) {
    list("backward takes", backward.inputs);
    list("backward gives", backward.outputs);
  }
  return text;
}

std::string guards_text(const Compilation& made) {
  std::string text = made.guards->to_text();
  for (const ModuleGuard& guard : made.modules) {
    text += fmt::format("module `{}` is in {} mode\n", guard.name,
                        guard.training ? "training" : "evaluation");
  }
  return text;
}

size_t saved_bytes(const Graph& forward) {
  size_t bytes = 0;
  for (const GraphOutput& output : forward.outputs) {
    if (std::holds_alternative<Saved>(output.role))
      bytes += forward.type(*output.value).size_bytes();
  }
  return bytes;
}

}  // namespace

Report::Specialisation describe(const Compilation& made) {
  Report::Specialisation report{.signature = signature_text(made),
                                .joint_graph = print_graph(made.joint),
                                .forward_graph = print_graph(made.forward),
                                .backward_graph = {},
                                .forward_dot = to_dot(made.forward, "forward"),
                                .backward_dot = {},
                                .guards = guards_text(made),
                                .stages = made.stages,
                                .compile_ms = 0,
                                .saved_bytes = saved_bytes(made.forward),
                                .last_resort_shapes = made.last_resort_shapes,
                                .calls = made.calls};
  for (const Graph& backward : made.backwards) {
    report.backward_graph += print_graph(backward);
    report.backward_dot += to_dot(backward, "backward");
  }
  for (const auto& stage : made.stages) report.compile_ms += stage.ms;
  return report;
}

}  // namespace foregrad::detail
