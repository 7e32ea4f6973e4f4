#include "graph/recording.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "graph/literal.h"
#include "graph/printer.h"

namespace foregrad {
namespace {

bool ops_equal(const RecordedOp& left, const RecordedOp& right) {
  return left.op == right.op && left.modes == right.modes && left.is_call == right.is_call &&
         left.attaches == right.attaches && left.hook == right.hook &&
         operands_equal(left.args, right.args) && operands_equal(left.results, right.results);
}

using BackwardEntry = std::map<uint32_t, RecordedBackward>::value_type;

bool backwards_equal(const BackwardEntry& left, const BackwardEntry& right) {
  return left.first == right.first && left.second.gradients == right.second.gradients &&
         !left.second.error == !right.second.error &&
         std::ranges::equal(left.second.ops, right.second.ops, ops_equal);
}

bool saved_equal(const RecordedNode::SavedTensor& left, const RecordedNode::SavedTensor& right) {
  return left.value == right.value && left.is_checked == right.is_checked;
}

bool nodes_equal(const RecordedNode& own, const RecordedNode& other) {
  return own.inputs == other.inputs && std::ranges::equal(own.saved, other.saved, saved_equal) &&
         std::ranges::equal(own.backwards, other.backwards, backwards_equal);
}

/// Where a tensor lies in its storage is the guards' matter.
bool types_equal(TensorType left, const TensorType& right) {
  left.storage_offset = right.storage_offset;
  return left == right;
}

bool inputs_equal(const RecordedInput& left, const RecordedInput& right) {
  return left.value == right.value && left.role == right.role &&
         left.tensor.is_same(right.tensor) && types_equal(left.seen.before, right.seen.before) &&
         left.seen.requires_grad_before == right.seen.requires_grad_before &&
         left.seen.retains_grad == right.seen.retains_grad;
}

bool outputs_equal(const RecordedOutput& left, const RecordedOutput& right) {
  return left.seen.defined == right.seen.defined && left.seen.value == right.seen.value &&
         left.seen.retains_grad == right.seen.retains_grad;
}

bool reads(const RecordedOp& op, ValueId value) {
  bool found = false;
  for (const Operand& arg : op.args) {
    for_each_value(arg, [&](ValueId id) { found = found || id == value; });
  }
  return found;
}

/// Returns the place of the first operator that reads the input, the number of operators if none
/// does.
size_t first_use(const Recording& recording, size_t input) {
  const ValueId value = recording.inputs[input].value;
  size_t place = 0;
  while (place < recording.ops.size() && !reads(recording.ops[place], value)) ++place;
  return place;
}

/// Returns the place of the first operator that reads an input in which the recordings differ, none
/// if they agree.
std::optional<size_t> first_use_of_different_input(const Recording& left, const Recording& right) {
  std::optional<size_t> first;
  for (size_t i = 0; i < std::max(left.inputs.size(), right.inputs.size()); ++i) {
    const bool in_left = i < left.inputs.size(), in_right = i < right.inputs.size();
    if (in_left && in_right && inputs_equal(left.inputs[i], right.inputs[i])) continue;
    if (in_left) first = std::min(first.value_or(left.ops.size()), first_use(left, i));
    if (in_right) first = std::min(first.value_or(right.ops.size()), first_use(right, i));
  }
  return first;
}

}  // namespace

void fold_history(uint64_t& history, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  const bool requires_grad = meta && tensor.requires_grad();
  // A view whose base was written has no node before it is asked for one, but is no leaf.
  const bool is_leaf = requires_grad && meta->requires_grad_ && !meta->grad_fn_;
  history = history << 2U | (requires_grad ? 2U : 0U) | (requires_grad && !is_leaf ? 1U : 0U);
}

std::optional<size_t> first_difference(const Recording& left, const Recording& right) {
  const size_t common = std::min(left.ops.size(), right.ops.size());
  size_t place = 0;
  const auto agree = [&](const RecordedOp& own, const RecordedOp& other) {
    if (!ops_equal(own, other)) return false;
    if (own.attaches)
      return nodes_equal(*left.nodes[own.attaches->node], *right.nodes[own.attaches->node]);
    return !own.hook || nodes_equal(*left.hooks[*own.hook].does, *right.hooks[*own.hook].does);
  };
  while (place < common && agree(left.ops[place], right.ops[place])) ++place;
  const bool ops_differ = place < std::max(left.ops.size(), right.ops.size());
  const auto input_use = first_use_of_different_input(left, right);
  if (input_use) return ops_differ ? std::min(place, *input_use) : *input_use;
  if (ops_differ) return place;
  const bool outputs_agree = std::equal(left.outputs.begin(), left.outputs.end(),
                                        right.outputs.begin(), right.outputs.end(), outputs_equal);
  // Programs that differ only in what they return differ after the last operator.
  return outputs_agree ? std::nullopt : std::optional(place);
}

std::string to_text(const RecordedOp& op) {
  if (op.hook) return fmt::format("a hook on %{}", std::get<ValueId>(op.results[0]).index);
  std::vector<at::Generator> generators;
  try {
    return call_to_text(op.op, op.args, generators);
  } catch (const c10::Error&) {  // a literal that graph text can't express; this text is for
                                 // messages only
    return operator_text(op.op) + "(...)";
  }
}

}  // namespace foregrad
