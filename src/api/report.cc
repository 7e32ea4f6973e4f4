#include "foregrad/report.h"

#include <fmt/format.h>

namespace foregrad {

std::string to_text(const Report& report) {
  std::string text = fmt::format("{} specialisations, {} calls ran eagerly\n",
                                 report.specialisations.size(), report.eager_calls);
  for (const auto& reason : report.fallback_reasons)
    text += fmt::format("ran eagerly: {}\n", reason);
  for (const auto& reason : report.recompiles) text += fmt::format("compiled again: {}\n", reason);
  for (size_t i = 0; i < report.specialisations.size(); ++i) {
    const auto& one = report.specialisations[i];
    text += fmt::format(
        "\nspecialisation {}: {} calls, compiled in {:.2f} ms, {} bytes saved for backward\n", i,
        one.calls, one.compile_ms, one.saved_bytes);
    for (const auto& stage : one.stages)
      text += fmt::format("  {}: {:.2f} ms\n", stage.name, stage.ms);
    for (const auto& [op, count] : one.last_resort_shapes) {
      text += fmt::format("  shape of `{}` found by running it, {} times\n", op, count);
    }
    text += fmt::format("signature\n{}guards\n{}forward {}backward {}", one.signature, one.guards,
                        one.forward_graph, one.backward_graph);
  }
  return text;
}

}  // namespace foregrad
