// What an operator's schema and tags tell, completed by the op table. Nothing here names an
// operator.
//
// All answers are computed once an operator and kept: a question costs a few nanoseconds and takes
// no lock. References stay valid for the life of the process.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace foregrad {

/// Whether the schema writes any argument (`Tensor(a!)`).
bool is_mutating(const c10::OperatorHandle& op);

/// Whether the schema writes argument `index`.
bool is_written(const c10::OperatorHandle& op, size_t index);

/// A result that may share memory with an argument. Either may be a list of tensors.
struct AliasPair {
  uint32_t argument = 0;
  uint32_t result = 0;
  bool operator==(const AliasPair&) const = default;
};

/// Returns the pairs of argument and result that share memory without a write, as `Tensor(a)` in
/// the schema says, in the order of the results.
const std::vector<AliasPair>& view_aliases(const c10::OperatorHandle& op);

/// Returns all pairs that may share memory: `view_aliases` and those that the schema keeps quiet
/// about (`aten::_unsafe_view`). Where memory is at stake (lifetimes, writing in place, what an
/// output shares) this is the question to ask.
const std::vector<AliasPair>& memory_aliases(const c10::OperatorHandle& op);

/// Whether some result is a view of an argument, and nothing is written.
bool is_view(const c10::OperatorHandle& op);

/// Whether the results that `view_aliases` names are views whatever the arguments are. A composite
/// operator (`aten::reshape`, `aten::contiguous`, `aten::to.dtype`) may copy instead.
bool is_certain_view(const c10::OperatorHandle& op);

/// Whether the operator draws random numbers (its tag says so, or it takes a generator).
bool is_random(const c10::OperatorHandle& op);

/// Whether a call does more than to give its results: it writes an argument, openly or hidden,
/// draws random numbers, is a memory variant (whose kernel looks for overlap), was declared to have
/// one, or has no tensor result and so only an effect to be called for (a check that throws). Such
/// a call is neither dropped nor run twice.
bool has_effects(const c10::OperatorHandle& op);

/// Says that the operator has an effect of which its schema does not tell.
void declare_effect(const c10::OperatorHandle& op);

/// Whether that was said: its kernel must not run but where eager runs it.
bool has_declared_effect(const c10::OperatorHandle& op);

/// Whether two calls with equal arguments give equal results and no call has an effect: no write,
/// no randomness, no dependence on uninitialised memory, at least one tensor result. Operators that
/// only the schema of a user's library describes count as pure if their schema writes nothing.
bool is_pure(const c10::OperatorHandle& op);

/// Whether the elements of its result are whatever memory held.
bool gives_uninitialised(const c10::OperatorHandle& op);

/// Whether it may throw for what its arguments hold: one of them has the name of indices into
/// another.
bool checks_values(const c10::OperatorHandle& op);

/// Whether it throws for some offsets of its argument into the storage: it sees the elements as
/// wider ones.
bool checks_alignment(const c10::OperatorHandle& op);

/// Whether the result is a view that autograd does not follow.
bool cuts_history(const c10::OperatorHandle& op);

/// Whether each element of the result depends only on the elements of the arguments at the same
/// place (its tag says so).
bool is_pointwise(const c10::OperatorHandle& op);

/// Returns the in-place variant of an operator (`aten::add_.Tensor` of `aten::add.Tensor`): same
/// arguments, the first one written and returned.
const std::optional<c10::OperatorHandle>& in_place_variant(const c10::OperatorHandle& op);

}  // namespace foregrad
