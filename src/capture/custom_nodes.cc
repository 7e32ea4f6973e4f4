#include "capture/custom_nodes.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "capture/outside_state.h"
#include "capture/trace_tensor.h"
#include "graph/refusal.h"

namespace foregrad {

namespace {

using torch::autograd::Edge;
using torch::autograd::variable_list;

/// Each set of tangents is a run of the user's backward.
constexpr size_t kMostResults = 3;

std::string what_of(const c10::intrusive_ptr<torch::autograd::Node>& node) {
  return fmt::format("the backward of the custom function `{}`", node->name());
}

}  // namespace

void CustomNodes::note(const at::Tensor& tensor) {
  const auto value = values_.find(tensor);
  if (!value) return;
  const bool is_result = values_.has_other_node(*value);
  const uint32_t advance = values_.unnoted_advance(*value);
  if (!is_result && advance == 0) return;
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::requires_grad_", "");
  RecordedOp recorded{.op = op,
                      .args = {*value, c10::IValue(true)},
                      .results = {*value},
                      .modes = current_modes(),
                      .is_call = false};
  if (is_result) {
    recorded.attaches = result_of(tensor, *value);
    recorded.attaches->is_written = advance > 0;
  }
  recorded.writes.push_back({.value = *value,
                             .counter = values_.counter_of(tensor),
                             .version_advance = advance,
                             .rewritten = is_result ? value : std::nullopt,
                             .has_history = is_result,
                             .data = false,
                             .storage = false});
  recording_.ops.push_back(std::move(recorded));
  values_.note_node(*value);
  values_.note_version(*value);
  if (is_result) values_.note_requires_grad(*value, true);
}

NodeResult CustomNodes::result_of(const at::Tensor& tensor, ValueId value) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  NodeResult result{number(meta->grad_fn_), meta->output_nr_};
  if (tensor.is_view()) {
    result.creation_meta = static_cast<uint8_t>(
        torch::autograd::impl::get_view_autograd_meta(tensor)->get_creation_meta());
  }
  found_[result.node].values.emplace(value.index, result.result);
  return result;
}

uint32_t CustomNodes::number(const c10::intrusive_ptr<torch::autograd::Node>& node) {
  if (const auto known = numbers_.find(node.get()); known != numbers_.end()) return known->second;
  auto recorded = std::make_shared<RecordedNode>();
  for (const Edge& edge : node->next_edges()) recorded->inputs.push_back(value_behind(edge));
  for (uint32_t i = 0; i < node->num_inputs(); ++i) {
    const auto& metadata = node->input_metadata(i);
    auto& result = recorded->results.emplace_back();
    if (!metadata.options().has_dtype()) continue;
    const auto sizes = C10_AS_INTARRAYREF_SLOW(metadata.shape_as_dim_vector());
    result = RecordedNode::Result{c10::typeMetaToScalarType(metadata.dtype()),
                                  {sizes.begin(), sizes.end()}};
  }
  const auto number = static_cast<uint32_t>(found_.size());
  numbers_.emplace(node.get(), number);
  recording_.nodes.push_back(recorded);
  found_.push_back({node, std::move(recorded)});
  return number;
}

/// Finds the tensor whose history begins at the edge.
std::optional<ValueId> CustomNodes::value_behind(const Edge& edge) {
  if (!edge.is_valid()) return std::nullopt;
  if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(edge.function.get()))
    return values_.number(inputs_.is_known(leaf->variable) ? inputs_.stand_in_of(leaf->variable)
                          : is_wrapper(leaf->variable)     ? leaf->variable
                                                           : inputs_.capture(leaf->variable));
  // One that is written by the function has had a history of its own before.
  if (const auto value = values_.find_by_node(edge)) return value;
  const auto& tensors = values_.tensors();
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const auto* meta = torch::autograd::impl::get_autograd_meta(tensors[i]);
    if (!meta || meta->grad_fn_ != edge.function || meta->output_nr_ != edge.input_nr) continue;
    note(at::Tensor(tensors[i]));  // the result of another one
    return ValueId{i};
  }
  throw Refusal(
      "a custom function takes a tensor whose history is not known. Expected tensors made by "
      "operators, inputs and captured leaves.");
}

void CustomNodes::record_backwards() {
  for (size_t i = 0; i < found_.size(); ++i) {
    const Found found = found_[i];
    const std::string what = what_of(found.node);
    if (found.values.size() > kMostResults) {
      throw Refusal(fmt::format(
          "{}: it has {} results. Expected at most {}. Give what needs no gradient through "
          "`mark_non_differentiable`, or make several functions of it.",
          what, found.values.size(), kMostResults));
    }
    UsersBackward backward{
        .what = what,
        .recorded = found.recorded,
        .values = found.values,
        .apply = [&](variable_list&& tangents) { return (*found.node)(std::move(tangents)); }};
    for (const auto& [value, result] : found.values) backward.may_be_defined |= 1U << result;
    backwards_.record(backward, BackwardRecorder::Saved::Checked);
  }
}

}  // namespace foregrad
