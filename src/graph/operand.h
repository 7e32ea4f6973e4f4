// What a node takes and gives: values, lists of values, and literals.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <variant>
#include <vector>

#include "graph/ids.h"

namespace foregrad {

/// An argument or a result of a node, typed as its schema says.
///
/// - `ValueId`: a tensor.
/// - list: a `Tensor[]` or `Tensor?[]`; an entry without value is an undefined tensor.
/// - literal: everything else. `None` stands for an absent optional and for an undefined tensor. A
/// tensor may be a
///   literal only if it is a zero-dimensional CPU constant (libtorch makes them of C++ numbers).
using ValueList = std::vector<std::optional<ValueId>>;
using Operand = std::variant<ValueId, ValueList, c10::IValue>;

/// Calls `visit(ValueId&)` or `visit(const ValueId&)` for each value in the operand, in order.
template <class AnyOperand, class Visitor>
void for_each_value(AnyOperand& operand, Visitor&& visit) {
  if (auto* value = std::get_if<ValueId>(&operand)) {
    visit(*value);
  } else if (auto* list = std::get_if<ValueList>(&operand)) {
    for (auto& entry : *list) {
      if (entry) visit(*entry);
    }
  }
}

}  // namespace foregrad
