// Effects: what a call does to the tensors that its caller sees, but for their data, in the order
// in which eager does it.
//
// They are the operators of the recording that make views, or change sizes, strides, storage,
// history or flags, each to be called again on the caller's tensors under the modes of the
// recording; and between them the advances of versions and the places where the compiled call
// becomes a tensor's history. What autograd and the version counters then say is what eager would
// have left, because libtorch itself has done it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "graph/recording.h"

namespace foregrad {

/// Numbers a tensor that the effects touch: inputs first, by InputIndex.
struct Slot {
  uint32_t index = 0;
  auto operator<=>(const Slot&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Calls an operator of the recording. The values among its operands are slots.
struct CallAgain {
  RecordedOp op;
};
/// Two calls are equal if they do the same; what was seen of them in the recording does not count.
bool operator==(const CallAgain& left, const CallAgain& right);

/// Takes a view by sizes and strides, where no operator of the recording is declared to give it.
/// The offset counts from the base's.
struct TakeStrided {
  Slot base;
  Slot view;
  TensorType type;
  bool grad_mode = true;
  bool operator==(const TakeStrided&) const = default;
};
/// A write, whose data is there already, advances the version.
struct AdvanceVersion {
  Slot slot;
  uint32_t by = 0;
  bool operator==(const AdvanceVersion&) const = default;
};
/// The compiled call becomes the tensor's history.
struct JoinHistory {
  Slot slot;
  Differentiable as;
  uint32_t after_op = 0;  // of the recording: the history that the operator left is meant
  /// libtorch's, if it is a view with a history of its own: what a custom function gives.
  uint8_t creation_meta = 0;
  bool operator==(const JoinHistory&) const = default;
};

/// A view through which its base's history was replaced gets the new one at once; other views get
/// it when they are asked.
struct RefreshHistory {
  Slot slot;
  bool operator==(const RefreshHistory&) const = default;
};

/// The tensor has a history that a later effect replaces: views that are taken until then have one
/// too, which autograd replaces when they are asked for it.
struct HoldHistory {
  Slot slot;
  bool operator==(const HoldHistory&) const = default;
};

using Effect =
    std::variant<CallAgain, TakeStrided, AdvanceVersion, JoinHistory, RefreshHistory, HoldHistory>;

/// Writes an effect for people, for example `%3 = aten::view(%0, size=[6])`.
std::string to_text(const Effect& effect);

}  // namespace foregrad
