#include "foregrad/aot.h"

#include <memory>
#include <utility>

#include "analysis/views_and_mutations.h"
#include "api/compilation.h"
#include "capture/replay.h"
#include "passes/pipeline.h"

namespace foregrad::detail {

Graph graph_of_call(const Leaves& leaves, BoundFunction& function, const CompileOptions& options) {
  Recorded recorded =
      record_call(leaves, function, options, [](const at::Tensor&, const std::string&) {});
  const auto recording =
      settle(std::make_shared<const Recording>(std::move(recorded.recording)), leaves);
  const ViewAndMutationMeta meta = analyze_views_and_mutations(*recording);
  Graph graph = trace_all_outputs(*recording, meta, {}).graph;
  return run_passes(joint_passes(), std::move(graph));
}

}  // namespace foregrad::detail
