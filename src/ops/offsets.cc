#include "ops/offsets.h"

#include <algorithm>

#include "ops/schema.h"

namespace foregrad {

namespace {

bool checks_alignment(const Recording& recording) {
  return std::ranges::any_of(
      recording.ops, [](const RecordedOp& op) { return foregrad::checks_alignment(op.op); });
}

}  // namespace

bool takes_offsets(const Recording& recording) {
  if (std::ranges::any_of(recording.ops, [](const RecordedOp& op) { return takes_offset(op.op); }))
    return true;
  return checks_alignment(recording) &&
         !std::ranges::all_of(recording.inputs, [](const RecordedInput& input) {
           return input.seen.before.begins_aligned();
         });
}

bool needs_alignment(const Recording& recording) {
  return checks_alignment(recording) && !takes_offsets(recording);
}

}  // namespace foregrad
