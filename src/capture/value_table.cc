#include "capture/value_table.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "capture/trace_tensor.h"
#include "graph/refusal.h"

namespace foregrad {

bool has_own_flag(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta && meta->requires_grad_;
}

ValueId ValueTable::number(const at::Tensor& tensor) {
  auto [found, is_new] = by_identity_.try_emplace(tensor.unsafeGetTensorImpl());
  if (!is_new) {
    if (const auto* traced = traced_inside(tensor))
      by_traced_value_[traced->value().index] = found->second;
    return found->second;
  }
  const ValueId value{recording_.value_count++};
  found->second = value;
  tensors_.push_back(tensor);
  storages_.push_back(tensor.storage().unsafeGetStorageImpl());
  if (is_wrapper(tensor) && !tensor.storage().data()) forbid_data(tensor.storage());
  requires_grad_.push_back(tensor.requires_grad());
  own_flags_.push_back(foregrad::has_own_flag(tensor));
  nodes_.push_back(noted_node_of(tensor));
  recording_.starts_with_history.push_back(!tensor.is_view() && tensor.requires_grad() &&
                                           !tensor.is_leaf());
  const auto [counter, is_new_counter] =
      by_counter_.try_emplace(version_counter_identity(tensor), value);
  counters_.push_back(counter->second);
  versions_.push_back(static_cast<uint32_t>(tensor._version()));
  if (!is_new_counter) recording_.counters.emplace(value, counter->second);
  if (tensor.is_view()) recording_.view_bases.emplace(value, number(base_of(tensor)));
  if (is_new_counter && tensor._version() > 0)
    recording_.first_versions.emplace(value, static_cast<uint32_t>(tensor._version()));
  if (const auto* traced = traced_inside(tensor)) by_traced_value_[traced->value().index] = value;
  return value;
}

std::optional<ValueId> ValueTable::find(const at::Tensor& tensor) const {
  const auto found = by_identity_.find(tensor.unsafeGetTensorImpl());
  return found == by_identity_.end() ? std::nullopt : std::optional(found->second);
}

ValueId ValueTable::counter_of(const at::Tensor& tensor) const {
  return by_counter_.at(version_counter_identity(tensor));
}

std::optional<ValueId> ValueTable::find_again(const at::Tensor& tensor) const {
  if (const auto value = find(tensor)) return value;
  const auto* traced = traced_inside(tensor);
  if (!traced) return std::nullopt;
  const auto found = by_traced_value_.find(traced->value().index);
  return found == by_traced_value_.end() ? std::nullopt : std::optional(found->second);
}

void ValueTable::adopt(const at::Tensor& tensor) {
  if (by_identity_.contains(tensor.unsafeGetTensorImpl())) return;
  const auto value = find_again(tensor);
  if (!value) return;
  at::Tensor& known = tensors_[value->index];
  if (known.use_count() > 1 || known.requires_grad() || known.is_view() || !tensor.is_leaf() ||
      tensor.is_view())
    return;
  while (tensor._version() < known._version()) torch::autograd::impl::bump_version(tensor);
  by_identity_.erase(known.unsafeGetTensorImpl());
  by_identity_.emplace(tensor.unsafeGetTensorImpl(), *value);
  by_counter_.erase(version_counter_identity(known));
  by_counter_.emplace(version_counter_identity(tensor), *value);
  known = tensor;
}

ValueTable::NodeKey ValueTable::node_of(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta ? NodeKey{meta->grad_fn_.get(), meta->output_nr_} : NodeKey();
}

ValueTable::NodeKey ValueTable::noted_node_of(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (meta && meta->grad_fn_) noted_nodes_.emplace_back(meta->grad_fn_);
  return node_of(tensor);
}

bool ValueTable::has_other_node(ValueId value) const {
  const at::Tensor& tensor = tensors_[value.index];
  if (tensor.is_view()) {
    using torch::autograd::CreationMeta;
    const auto creation =
        torch::autograd::impl::get_view_autograd_meta(tensor)->get_creation_meta();
    const bool is_one_of_several =
        creation == CreationMeta::MULTI_OUTPUT_NODE && !nodes_[value.index].node;
    if (creation != CreationMeta::IN_CUSTOM_FUNCTION && !is_one_of_several) return false;
  }
  return node_of(tensor) != nodes_[value.index];
}

void ValueTable::note_node(ValueId value) {
  nodes_[value.index] = noted_node_of(tensors_[value.index]);
}

uint32_t ValueTable::unnoted_advance(ValueId value) const {
  return static_cast<uint32_t>(tensors_[value.index]._version()) -
         versions_[counters_[value.index].index];
}

void ValueTable::note_version(ValueId value) {
  versions_[counters_[value.index].index] = static_cast<uint32_t>(tensors_[value.index]._version());
}

std::optional<ValueId> ValueTable::find_by_node(const torch::autograd::Edge& edge) const {
  const auto found = std::ranges::find(nodes_, NodeKey{edge.function.get(), edge.input_nr});
  if (found == nodes_.end()) return std::nullopt;
  return ValueId{static_cast<uint32_t>(found - nodes_.begin())};
}

void ValueTable::note_storage(ValueId value) {
  storages_[value.index] = tensors_[value.index].storage().unsafeGetStorageImpl();
}

ValueId ValueTable::value_of(const at::Tensor& tensor, const c10::OperatorHandle& op) const {
  if (const auto value = find_again(tensor)) return *value;
  throw Refusal(
      fmt::format("`{}`: a tensor `{}` was made in a way that tracing does not see. Expected "
                  "tensors made by operators.",
                  operator_text(op), to_text(type_of(tensor))));
}

Operand ValueTable::take(const c10::IValue& entry, const c10::OperatorHandle& op) const {
  if (entry.isTensor()) {
    const at::Tensor& tensor = entry.toTensor();
    if (!tensor.defined()) return c10::IValue();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return entry;
    return value_of(tensor, op);
  }
  ValueList values;
  if (entry.isTensorList()) {
    for (const at::Tensor& tensor : entry.toTensorVector()) {
      values.push_back(tensor.defined() ? std::optional(value_of(tensor, op)) : std::nullopt);
    }
    return values;
  }
  if (entry.isOptionalTensorList()) {
    for (const auto& tensor : entry.toOptionalTensorVector()) {
      values.push_back(tensor && tensor->defined() ? std::optional(value_of(*tensor, op))
                                                   : std::nullopt);
    }
    return values;
  }
  return entry;
}

Operand ValueTable::give(const c10::IValue& entry) {
  if (entry.isTensor()) {
    return entry.toTensor().defined() ? Operand(number(entry.toTensor())) : Operand(c10::IValue());
  }
  if (entry.isTensorList()) {
    ValueList values;
    for (const at::Tensor& tensor : entry.toTensorVector()) {
      values.push_back(tensor.defined() ? std::optional(number(tensor)) : std::nullopt);
    }
    return values;
  }
  return entry;
}

}  // namespace foregrad
