#include "capture/custom_nodes.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <string_view>
#include <unordered_set>
#include <utility>

#include "capture/outside_state.h"
#include "capture/stand_in.h"
#include "capture/trace_tensor.h"
#include "graph/alias.h"
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

bool is_about_version(const std::exception& error) {
  return std::string_view(error.what()).find("modified by an inplace operation") !=
         std::string_view::npos;
}

/// What eager's backward throws too, if it comes to run.
bool is_eagers(const std::exception& error) {
  return is_about_version(error) ||
         std::string_view(error.what()).find("backward through the graph a second time") !=
             std::string_view::npos;
}

/// Numbers the values of a backward by themselves.
class OwnNumbers {
 public:
  explicit OwnNumbers(const std::vector<RecordedNode::SavedTensor>& saved) {
    for (const auto& entry : saved) own(entry.value);
  }
  ValueId own(ValueId value) {
    return ValueId{
        numbers_.try_emplace(value.index, static_cast<uint32_t>(numbers_.size())).first->second};
  }
  uint32_t count() const { return static_cast<uint32_t>(numbers_.size()); }

 private:
  std::unordered_map<uint32_t, uint32_t> numbers_;
};

/// While it lives, operators are recorded as a backward's, and their writes are not the function's.
class OpsOfBackward {
 public:
  OpsOfBackward(std::vector<RecordedOp>& of_function, std::vector<RecordedOp>& of_backward,
                InputTable& inputs)
      : of_function_(of_function), of_backward_(of_backward), inputs_(inputs) {
    std::swap(of_function_, of_backward_);
    inputs_.note_writes(false);
  }
  OpsOfBackward(const OpsOfBackward&) = delete;
  OpsOfBackward& operator=(const OpsOfBackward&) = delete;
  ~OpsOfBackward() {
    std::swap(of_function_, of_backward_);
    inputs_.note_writes(true);
  }

 private:
  std::vector<RecordedOp>& of_function_;
  std::vector<RecordedOp>& of_backward_;
  InputTable& inputs_;
};

/// Visits the values of a backward that it did not make itself.
template <class Visit>
void for_each_saved(const RecordedBackward& backward, const std::vector<ValueId>& tangents,
                    Visit&& visit) {
  std::unordered_set<uint32_t> own;
  for (const ValueId tangent : tangents) own.insert(tangent.index);
  const auto look_at = [&](ValueId value) {
    if (!own.contains(value.index)) visit(value);
  };
  for (const RecordedOp& op : backward.ops) {
    for (const Operand& arg : op.args) for_each_value(arg, look_at);
    for (const Operand& result : op.results)
      for_each_value(result, [&](ValueId value) { own.insert(value.index); });
  }
  for (const auto& gradient : backward.gradients) {
    if (gradient) look_at(*gradient);
  }
}

}  // namespace

uint32_t CustomNodes::Found::results() const {
  uint32_t bits = 0;
  for (const auto& [value, result] : values) bits |= 1U << result;
  return bits;
}

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
  for (size_t i = 0; i < found_.size(); ++i) record_backwards(Found(found_[i]));
}

void CustomNodes::record_backwards(const Found& found) {
  if (found.values.size() > kMostResults) {
    throw Refusal(fmt::format(
        "{}: it has {} results. Expected at most {}. Give what needs no gradient through "
        "`mark_non_differentiable`, or make several functions of it.",
        what_of(found.node), found.values.size(), kMostResults));
  }
  std::vector<std::pair<uint32_t, Run>> runs;
  RecordedNode& node = *found.recorded;
  const uint32_t all = found.results();
  for (uint32_t defined = 0; defined <= all; ++defined) {
    if ((defined & all) == defined) runs.emplace_back(defined, run(found, defined));
  }
  std::unordered_set<uint32_t> saved;
  for (const auto& [defined, run] : runs) {
    for_each_saved(run.backward, run.tangents, [&](ValueId value) {
      if (!saved.insert(value.index).second) return;
      const auto result = found.values.find(value.index);
      node.saved.push_back(
          {.value = value,
           .result = result == found.values.end() ? std::nullopt : std::optional(result->second)});
    });
  }
  find_checked(found);
  for (auto& [defined, run] : runs) {
    OwnNumbers numbers(node.saved);
    const auto renumber = [&](ValueId& value) { value = numbers.own(value); };
    for (ValueId& tangent : run.tangents) renumber(tangent);
    for (RecordedOp& op : run.backward.ops) {
      for (Operand& arg : op.args) for_each_value(arg, renumber);
      for (Operand& result : op.results) for_each_value(result, renumber);
      op.writes.clear();
    }
    for (auto& gradient : run.backward.gradients) {
      if (gradient) renumber(*gradient);
    }
    run.backward.value_count = numbers.count();
    node.backwards.emplace(defined, std::move(run.backward));
  }
}

variable_list CustomNodes::make_tangents(const Found& found, uint32_t defined) {
  variable_list tangents;
  const auto& results = found.recorded->results;
  for (uint32_t i = 0; i < results.size(); ++i) {
    at::Tensor& tangent = tangents.emplace_back();
    if ((defined >> i & 1U) == 0) continue;
    tangent = make_tangent(tracer_,
                           {.dtype = results[i]->dtype,
                            .sizes = results[i]->sizes,
                            .strides = contiguous_strides(results[i]->sizes)},
                           UserOutput{{i}});
    values_.number(tangent);
  }
  return tangents;
}

CustomNodes::Run CustomNodes::run(const Found& found, uint32_t defined_tangents) {
  Run run;
  variable_list tangents = make_tangents(found, defined_tangents);
  for (const at::Tensor& tangent : tangents) {
    if (tangent.defined()) run.tangents.push_back(values_.number(tangent));
  }
  run.first_own_value = recording_.value_count;
  try {
    const OpsOfBackward ops(recording_.ops, run.backward.ops, inputs_);
    run.backward.gradients = take_gradients(found, std::move(tangents));
  } catch (const std::exception& error) {
    run.backward.error = std::current_exception();
    undo_writes(found, run);
    run.backward.ops.clear();
    if (defined_tangents == found.results() && !is_eagers(error)) throw;
    return run;
  }
  undo_writes(found, run);
  return run;
}

/// The recorder has counted them as the function's own. Throws `Refusal` for those that can't be
/// done later, unless the backward throws anyway.
void CustomNodes::undo_writes(const Found& found, Run& run) {
  for (const RecordedOp& op : run.backward.ops) {
    for (const RecordedWrite& write : op.writes) {
      const at::Tensor tensor = values_.tensors()[write.value.index];
      const bool is_tangent = std::ranges::find(run.tangents, write.value) != run.tangents.end();
      if (!is_tangent && is_own(run, tensor)) continue;
      const bool is_possible = !write.rewritten && !write.storage && write.data &&
                               (is_tangent || inputs_.is_whole_input(write.value));
      if (!is_possible && !run.backward.error) {
        throw Refusal(fmt::format(
            "{} does more to a tensor that it did not make than write the elements of a tangent "
            "or of an argument, by `{}`. Expected it to give new tensors.",
            what_of(found.node), to_text(op)));
      }
      run.backward.writes = true;
      c10::VariableVersion counter = torch::autograd::impl::version_counter(tensor);  // shared
      counter.set_version(counter.current_version() - write.version_advance);
      values_.note_version(write.value);
    }
  }
}

/// Whether the backward made the memory that the tensor lies in.
bool CustomNodes::is_own(const Run& run, const at::Tensor& tensor) const {
  const auto& tensors = values_.tensors();
  const auto* storage = tensor.storage().unsafeGetStorageImpl();
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const bool is_others = i < run.first_own_value || inputs_.is_whole_input(ValueId{i}) ||
                           std::ranges::find(run.tangents, ValueId{i}) != run.tangents.end();
    if (is_others && tensors[i].storage().unsafeGetStorageImpl() == storage) return false;
  }
  return true;
}

std::vector<std::optional<ValueId>> CustomNodes::take_gradients(const Found& found,
                                                                variable_list tangents) {
  // As with `create_graph`: what the backward itself does without grad mode is told from what
  // autograd does so.
  const at::AutoGradMode with_history(true);
  std::vector<std::optional<ValueId>> gradients;
  for (const at::Tensor& gradient : (*found.node)(std::move(tangents))) {
    auto& value = gradients.emplace_back();
    if (!gradient.defined()) continue;
    const at::Tensor own = is_wrapper(gradient) ? gradient : inputs_.capture(gradient);
    value = values_.find_again(own);
    if (!value)
      throw Refusal(what_of(found.node) + " gives a tensor that was made out of tracing's sight");
  }
  return gradients;
}

/// Tries what it does if they are written once more.
void CustomNodes::find_checked(const Found& found) {
  for (auto& saved : found.recorded->saved) {
    const at::Tensor tensor = values_.tensors()[saved.value.index];
    c10::VariableVersion counter = torch::autograd::impl::version_counter(tensor);  // shared
    const auto version = counter.current_version();
    torch::autograd::impl::bump_version(tensor);
    values_.note_version(saved.value);  // it is no doing of the backward's
    try {
      const Run unused = run(found, found.results());
      saved.is_checked = unused.backward.error != nullptr;
    } catch (const std::exception&) {
      saved.is_checked = true;  // it throws of a view that it is no longer what it was
    }
    counter.set_version(version);
    values_.note_version(saved.value);
  }
}

}  // namespace foregrad
