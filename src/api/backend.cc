#include "api/backend.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "graph/below_autograd.h"
#include "graph/refusal.h"
#include "partition/partition.h"
#include "runtime/plan.h"

namespace foregrad::detail {

namespace {

/// Holds what an executable gives to what the graph says.
class Checked {
 public:
  Checked(Executable run, const Graph& graph) : run_(std::move(run)) {
    for (const GraphOutput& output : graph.outputs)
      types_.push_back(output.value ? std::optional(graph.type(*output.value)) : std::nullopt);
  }

  std::vector<at::Tensor> operator()(std::vector<at::Tensor> inputs) const {
    const BelowAutograd below;
    std::vector<at::Tensor> results = run_(std::move(inputs));
    TORCH_CHECK(results.size() == types_.size(), "Foregrad: a backend's executable gives ",
                results.size(), " tensors. Expected ", types_.size(),
                ", one for each output of its graph.");
    for (size_t i = 0; i < results.size(); ++i) check(i, results[i]);
    return results;
  }

 private:
  void check(size_t output, const at::Tensor& result) const {
    const auto& type = types_[output];
    TORCH_CHECK(result.defined() == type.has_value(), "Foregrad: output ", output,
                " of a backend's executable is ", result.defined() ? "defined" : "undefined",
                ". Expected the contrary, as its graph says.");
    if (!type) return;
    const bool agrees = result.scalar_type() == type->dtype &&
                        result.sizes() == at::IntArrayRef(type->sizes) &&
                        result.strides() == at::IntArrayRef(type->strides);
    TORCH_CHECK(agrees, "Foregrad: output ", output, " of a backend's executable is `",
                to_text(type_of(result)), "`. Expected `", to_text(*type), "`, as its graph says.");
  }

  Executable run_;
  std::vector<std::optional<TensorType>> types_;  // by output
};

}  // namespace

const GraphCompiler& compiler_for(GraphUse use, const Backend* backend) {
  static const GraphCompiler own;
  if (!backend) return own;
  switch (use) {
    case GraphUse::Forward: return backend->forward;
    case GraphUse::Backward: return backend->backward;
    case GraphUse::Inference: break;
  }
  return backend->inference;
}

std::span<const Pass> passes_before(const GraphCompiler& compiler) {
  return compiler ? functional_final_passes() : final_passes();
}

Executable compile_graph(const GraphCompiler& compiler, const Graph& graph) {
  if (!compiler) return through_aten(graph);
  Executable executable = compiler(graph);
  TORCH_CHECK(executable, "Foregrad: a backend's compiler gave no executable.");
  return Checked(std::move(executable), graph);
}

std::vector<ValueId> choose_saved(const Graph& joint, const Backend* backend) {
  if (!backend || !backend->partitioner) return choose_saved_values(joint);
  std::vector<ValueId> saved = backend->partitioner(joint);
  std::ranges::sort(saved);
  saved.erase(std::unique(saved.begin(), saved.end()), saved.end());
  std::vector<bool> is_forwards(joint.values.size());
  for (const GraphInput& input : joint.inputs)
    is_forwards[input.value.index] = primal_of(input.role).has_value();
  for (const Node& node : joint.nodes) {
    if (node.phase != Phase::Forward) continue;
    for_each_definition(node, [&](ValueId value) { is_forwards[value.index] = true; });
  }
  for (const ValueId value : saved) {
    TORCH_CHECK(value.index < is_forwards.size() && is_forwards[value.index],
                "Foregrad: a backend's partitioner saves %", value.index,
                ". Expected primals and results of forward nodes.");
  }
  return saved;
}

Graph keep_mutations(Graph graph, const std::function<bool(InputIndex)>& is_whole) {
  static const auto copy = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  std::unordered_map<uint32_t, ValueId> inputs;
  for (const GraphInput& input : graph.inputs) {
    const bool is_callers =
        std::holds_alternative<UserInput>(input.role) || std::holds_alternative<Lifted>(input.role);
    if (is_callers) inputs.emplace(primal_of(input.role)->index, input.value);
  }
  std::vector<GraphOutput> outputs;
  for (const GraphOutput& output : graph.outputs) {
    const auto* mutated = std::get_if<MutatedInput>(&output.role);
    const auto input = mutated ? inputs.find(mutated->of.index) : inputs.end();
    if (input == inputs.end() || !is_whole(mutated->of)) {
      outputs.push_back(output);
      continue;
    }
    const ValueId written = add_value(graph, graph.type(input->second));
    graph.nodes.push_back({.op = copy,
                           .args = {input->second, *output.value, c10::IValue(false)},
                           .results = {written}});
  }
  graph.outputs = std::move(outputs);
  return graph;
}

}  // namespace foregrad::detail
