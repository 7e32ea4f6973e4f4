#include "capture/hooks.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "capture/history_walk.h"
#include "capture/outside_state.h"
#include "capture/trace_tensor.h"
#include "graph/refusal.h"

namespace foregrad {

namespace {

using torch::autograd::AutogradMeta;
using torch::autograd::Edge;
using torch::autograd::variable_list;

[[noreturn]] void refuse(const at::Tensor& tensor, const char* what) {
  throw Refusal(fmt::format("a hook on a tensor `{}` inside the function {}",
                            to_text(type_of(tensor)), what));
}

/// Where the tensor's history begins, as far as that is known: a view is not asked, since that
/// gives it the history that its base has by now.
Edge known_edge(const at::Tensor& tensor) {
  const AutogradMeta* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (!meta) return {};
  if (meta->grad_fn_) return {meta->grad_fn_, meta->output_nr_};
  return meta->requires_grad_ ? Edge(torch::autograd::impl::grad_accumulator(tensor), 0) : Edge();
}

bool has_stale_history(const at::Tensor& tensor) {
  return tensor.is_view() &&
         torch::autograd::impl::get_view_autograd_meta(tensor)->get_attr_version() !=
             tensor._version();
}

}  // namespace

bool Hooks::is_noted(const at::Tensor& tensor) const {
  const AutogradMeta* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (!meta || !meta->cpp_hooks_list_) return true;
  const auto noted = noted_.find(meta->cpp_hooks_list_.get());
  return (noted == noted_.end() ? 0 : noted->second) == meta->cpp_hooks_list_->size();
}

void Hooks::note(const at::Tensor& tensor) {
  if (is_noted(tensor)) return;
  const auto value = values_.find(tensor);
  if (!value) return;
  const bool is_input = inputs_.first_history(tensor).has_value();
  if (is_input && tensor.is_leaf()) {
    refuse(tensor,
           "stays on it after the call and another one joins it at each call, since it is an "
           "argument or a captured tensor that is a leaf. Register it outside of the function.");
  }
  const bool is_stand_in = std::ranges::any_of(
      inputs_.stand_ins(), [&](const at::Tensor& input) { return input.is_same(tensor); });
  if (is_stand_in || tensor.is_view()) {
    refuse(tensor,
           "is on an argument or on a view, which is not supported yet. Expected it to be on a "
           "tensor that an operator made, or to be registered outside of the function.");
  }
  const AutogradMeta* meta = torch::autograd::impl::get_autograd_meta(tensor);
  const List& list = meta->cpp_hooks_list_;
  size_t& noted = noted_[list.get()];
  const Edge edge = known_edge(tensor);
  // libtorch adds the hook to the others.
  const bool is_elsewhere = std::ranges::any_of(found_, [&](const Found& found) {
    return found.list == list && (has_stale_history(tensor) || !(found.edge == edge));
  });
  if (is_elsewhere) {
    refuse(tensor,
           "follows another one on a tensor that got another history in between. Expected all of "
           "them before the write, or after it.");
  }
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::requires_grad_", "");
  for (; noted < list->size(); ++noted) {
    recording_.ops.push_back({.op = op,
                              .args = {*value, c10::IValue(true)},
                              .results = {*value},
                              .modes = current_modes(),
                              .is_call = false,
                              .hook = static_cast<uint32_t>(found_.size())});
    found_.push_back({.value = *value, .list = list, .place = noted, .edge = edge});
  }
}

void Hooks::note_all(const c10::StorageImpl* storage) {
  const auto& tensors = values_.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!is_noted(tensors[i]) && tensors[i].storage().unsafeGetStorageImpl() == storage)
      note(at::Tensor(tensors[i]));
  }
}

/// What a backward reads may have a history that leads elsewhere.
Hooks::Nodes Hooks::find_nodes(const std::vector<at::Tensor>& outputs) const {
  torch::autograd::edge_list roots;
  const auto add = [&](const at::Tensor& tensor) {
    for (const at::Tensor& one : {tensor, tensor.is_view() ? base_of(tensor) : tensor}) {
      if (Edge edge = known_edge(one); edge.is_valid()) roots.push_back(std::move(edge));
    }
  };
  const auto add_read = [&](const RecordedNode& node) {
    for (const auto& saved : node.saved) add(values_.tensors()[saved.value.index]);
  };
  for (const at::Tensor& output : outputs) {
    if (output.defined() && is_wrapper(output)) add(output);
  }
  for (const at::Tensor& input : inputs_.stand_ins()) add(input);
  for (const auto& node : recording_.nodes) add_read(*node);
  for (const Found& found : found_) {
    if (found.recorded) add_read(*found.recorded->does);
  }
  return nodes_behind(roots);
}

/// Nodes of leaves are the caller's own. Others have one hook for each list.
void Hooks::refuse_other_hooks(const Nodes& nodes) const {
  std::map<const torch::autograd::Node*, std::set<const void*>> lists;
  for (const Found& found : found_) lists[found.edge.function.get()].insert(found.list.get());
  for (const torch::autograd::Node* const_node : nodes) {
    auto* node = const_cast<torch::autograd::Node*>(const_node);
    if (dynamic_cast<torch::autograd::AccumulateGrad*>(node)) continue;
    const auto known = lists.find(node);
    const size_t count = known == lists.end() ? 0 : known->second.size();
    if (node->pre_hooks().empty() && node->post_hooks().empty() &&
        node->tensor_pre_hooks().size() == count)
      continue;
    throw Refusal(fmt::format(
        "a hook on an autograd node `{}`, or on a tensor that tracing does not see, inside the "
        "function is not supported. Expected `register_hook` of a tensor made by an operator.",
        node->name()));
  }
}

RecordedHook Hooks::record(const Found& found) {
  const at::Tensor tensor = values_.tensors()[found.value.index];
  const auto& metadata = found.edge.function->input_metadata(found.edge.input_nr);
  const auto sizes = C10_AS_INTARRAYREF_SLOW(metadata.shape_as_dim_vector());
  auto does = std::make_shared<RecordedNode>();
  does->results.emplace_back(RecordedNode::Result{
      c10::typeMetaToScalarType(metadata.options().dtype()), {sizes.begin(), sizes.end()}});
  const auto hook = (*found.list)[found.place];
  backwards_.record({.what = "a hook on a tensor inside the function",
                     .recorded = does,
                     .apply = [&](variable_list&& tangents) -> variable_list {
                       at::Tensor given(hook(tangents[0]));
                       return {given.defined() ? given : tangents[0]};
                     },
                     .may_be_defined = 1},
                    BackwardRecorder::Saved::Unchecked);
  const auto first = inputs_.first_history(tensor);
  const bool is_on_last_history = known_edge(tensor) == found.edge && !has_stale_history(tensor);
  if (!is_on_last_history && tensor.is_leaf() && tensor.requires_grad())
    refuse(tensor, "that is made a leaf afterwards is not supported.");
  return {.value = found.value,
          .is_on_first_history = first && *first == found.edge,
          .is_on_last_history = is_on_last_history,
          .does = std::move(does)};
}

void Hooks::record(const std::vector<at::Tensor>& outputs) {
  for (bool is_new = true; is_new;) {
    const Nodes nodes = find_nodes(outputs);
    refuse_other_hooks(nodes);
    is_new = false;
    for (size_t i = 0; i < found_.size(); ++i) {
      const bool is_removed = !(*found_[i].list)[found_[i].place];
      if (is_removed || found_[i].recorded || !nodes.contains(found_[i].edge.function.get()))
        continue;
      RecordedHook hook = record(Found(found_[i]));
      found_[i].recorded = std::move(hook);
      is_new = true;
    }
  }
  std::vector<std::optional<uint32_t>> numbers(found_.size());
  for (size_t i = 0; i < found_.size(); ++i) {
    if (!found_[i].recorded) continue;
    numbers[i] = static_cast<uint32_t>(recording_.hooks.size());
    recording_.hooks.push_back(*found_[i].recorded);
  }
  keep_in_recording(numbers);
  for (const at::Tensor& tensor : values_.tensors()) {
    if (!is_noted(tensor)) refuse(tensor, "was registered by a hook or a backward.");
  }
}

/// `numbers`: of the hooks that were found, if they are kept.
void Hooks::keep_in_recording(const std::vector<std::optional<uint32_t>>& numbers) {
  std::erase_if(recording_.ops,
                [&](const RecordedOp& op) { return op.hook && !numbers[*op.hook]; });
  for (RecordedOp& op : recording_.ops) {
    if (op.hook) op.hook = numbers[*op.hook];
  }
}

std::vector<ValueId> Hooks::tensors() const {
  std::vector<ValueId> tensors;
  for (const RecordedHook& hook : recording_.hooks) {
    tensors.push_back(hook.value);
    for (const auto& saved : hook.does->saved) tensors.push_back(saved.value);
  }
  return tensors;
}

}  // namespace foregrad
