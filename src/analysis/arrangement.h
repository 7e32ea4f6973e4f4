// How the inputs of a call must lie so that a trace of it does to them what eager does.
#pragma once

#include <vector>

#include "graph/arrangement.h"
#include "graph/recording.h"

namespace foregrad {

/// What a call does to one input.
struct InputWrites {
  bool data = false;     // writes its elements
  bool history = false;  // autograd replaces its history
  bool storage = false;  // gives it another storage or size
  bool operator==(const InputWrites&) const = default;
};

/// Whatever a call may do to inputs that it shares or that have gaps: what is assumed before the
/// first recording.
InputWrites any_writes();

/// Reads from a recording what the call does to each input but view bases and memories.
std::vector<InputWrites> writes_of(const Recording& recording);

/// Throws `Refusal` if autograd replaces the history of a view that was made a leaf: its base would
/// get a history that it has not.
void check_leaf_views(const std::vector<InputFacts>& inputs,
                      const std::vector<InputWrites>& writes);

/// Arranges the inputs as plainly as their writes allow, from storage, sizes, strides and offset
/// alone.
///
/// - A view is taken as a view of its base if autograd replaces the history of any view of that
///   base, or of the base.
/// - Inputs share a memory if they overlap and one is written, if a written one has gaps, or if its
///   storage is replaced. Inputs that share a storage without an element in common do not overlap.
/// - If offsets are taken and anything is written, memories are whole storages.
Arrangement arrange(const std::vector<InputFacts>& inputs, const std::vector<InputWrites>& writes,
                    bool takes_offsets);

}  // namespace foregrad
