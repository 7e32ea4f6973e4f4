#include "graph/recording.h"

#include <algorithm>

#include "graph/literal.h"
#include "graph/printer.h"

namespace foregrad {
namespace {

bool operands_equal(const std::vector<Operand>& left, const std::vector<Operand>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const Operand& a, const Operand& b) { return foregrad::operands_equal(a, b); });
}

bool ops_equal(const RecordedOp& left, const RecordedOp& right) {
  return left.op == right.op && left.modes == right.modes && operands_equal(left.args, right.args) &&
         operands_equal(left.results, right.results);
}

bool inputs_equal(const RecordedInput& left, const RecordedInput& right) {
  return left.value == right.value && left.role == right.role && left.tensor.is_same(right.tensor) &&
         left.seen.before == right.seen.before && left.seen.requires_grad_before == right.seen.requires_grad_before;
}

bool outputs_equal(const RecordedOutput& left, const RecordedOutput& right) {
  return left.seen.defined == right.seen.defined && left.seen.value == right.seen.value;
}

bool reads(const RecordedOp& op, ValueId value) {
  bool found = false;
  for (const Operand& arg : op.args) {
    for_each_value(arg, [&](ValueId id) { found = found || id == value; });
  }
  return found;
}

/// Returns the place of the first operator that reads an input in which the recordings differ, none if they agree.
std::optional<size_t> first_use_of_different_input(const Recording& left, const Recording& right) {
  const size_t common = std::min(left.inputs.size(), right.inputs.size());
  const auto& longer = left.inputs.size() > right.inputs.size() ? left : right;
  size_t different = 0;
  while (different < common && inputs_equal(left.inputs[different], right.inputs[different])) ++different;
  if (different == longer.inputs.size()) return std::nullopt;
  const ValueId value = longer.inputs[different].value;
  size_t place = 0;
  while (place < longer.ops.size() && !reads(longer.ops[place], value)) ++place;
  return place;
}

}  // namespace

std::optional<size_t> first_difference(const Recording& left, const Recording& right) {
  const size_t common = std::min(left.ops.size(), right.ops.size());
  size_t place = 0;
  while (place < common && ops_equal(left.ops[place], right.ops[place])) ++place;
  const bool ops_differ = place < std::max(left.ops.size(), right.ops.size());
  const auto input_use = first_use_of_different_input(left, right);
  if (input_use) return ops_differ ? std::min(place, *input_use) : *input_use;
  if (ops_differ) return place;
  const bool outputs_agree = std::equal(left.outputs.begin(), left.outputs.end(), right.outputs.begin(),
                                        right.outputs.end(), outputs_equal);
  // Programs that differ only in what they return differ after the last operator.
  return outputs_agree ? std::nullopt : std::optional(place);
}

std::string to_text(const RecordedOp& op) {
  std::vector<at::Generator> generators;
  return call_to_text(op.op, op.args, generators);
}

}  // namespace foregrad
