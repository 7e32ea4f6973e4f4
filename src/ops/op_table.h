// The op table: what is known of an operator that neither its schema nor its tags tell.
//
// One row an operator. An operator without a row is described by its schema alone, so a row is
// never needed to be correct about a well-declared operator. Questions about operators are asked in
// schema.h, which reads the table; nothing else does.
#pragma once

#include <ATen/core/operator_name.h>

#include <span>

namespace foregrad {

struct OpRow {
  const char* name;  // with the namespace, for example `aten::empty_like`
  const char* overload = "";
  const char* traced_as = nullptr;   // an operator of the same arguments that stands for it
  bool gives_uninitialised = false;  // the result's elements are whatever memory held
  bool may_share_memory = false;     // a result may share memory with a tensor argument
  bool has_hidden_write = false;     // writes an argument that the schema does not mark
  bool draws_random = false;         // draws random numbers without the tag
  bool cuts_history = false;         // a view that autograd does not follow
  bool checks_alignment = false;     // throws if elements of another width begin between its own
};

/// Returns all rows, ordered by name and overload.
std::span<const OpRow> op_table();

/// Returns the operator's row, null if it has none.
const OpRow* find_op_row(const c10::OperatorName& name);

}  // namespace foregrad
