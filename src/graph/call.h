// Boxed calls: a node's operands to the dispatcher's stack, and the stack's results to values.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "graph/operand.h"

namespace foregrad {

/// Calls `visit` for each tensor in the entry, list entries included.
template <class Visit>
void for_each_tensor(const c10::IValue& entry, Visit&& visit) {
  if (entry.isTensor()) {
    visit(entry.toTensor());
  } else if (entry.isTensorList()) {
    for (const at::Tensor& tensor : entry.toTensorVector()) visit(tensor);
  } else if (entry.isOptionalTensorList()) {
    for (const auto& tensor : entry.toOptionalTensorVector()) {
      if (tensor) visit(*tensor);
    }
  }
}

/// Calls `change` for each tensor in the entry, list entries included, and stores what it returns.
template <class Change>
void change_tensors(c10::IValue& entry, Change&& change) {
  if (entry.isTensor()) {
    entry = change(entry.toTensor());
  } else if (entry.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : entry.toTensorVector()) list.push_back(change(tensor));
    entry = std::move(list);
  } else if (entry.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : entry.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(change(*tensor)) : std::nullopt);
    entry = std::move(list);
  }
}

/// Makes the stack entry of one operand. `value(ValueId)` gives the tensor of a value. `type` is
/// the argument's in the schema: it tells an undefined tensor from an absent one, and the kind of a
/// list.
template <class ValueOf>
c10::IValue to_stack_entry(const Operand& operand, const c10::Type& type, ValueOf&& value) {
  if (const auto* id = std::get_if<ValueId>(&operand)) return c10::IValue(at::Tensor(value(*id)));
  if (const auto* list = std::get_if<ValueList>(&operand)) {
    // A `Tensor[]` has no absent entries; a `Tensor?[]` may.
    const bool optional_entries = type.kind() == c10::TypeKind::ListType &&
                                  type.containedType(0)->kind() == c10::TypeKind::OptionalType;
    if (optional_entries) {
      c10::impl::GenericList tensors(type.containedType(0));
      tensors.reserve(list->size());
      for (const auto& entry : *list) {
        tensors.push_back(entry ? c10::IValue(at::Tensor(value(*entry))) : c10::IValue());
      }
      return c10::IValue(tensors);
    }
    c10::List<at::Tensor> tensors;
    tensors.reserve(list->size());
    for (const auto& entry : *list)
      tensors.push_back(entry ? at::Tensor(value(*entry)) : at::Tensor());
    return c10::IValue(std::move(tensors));
  }
  const auto& literal = std::get<c10::IValue>(operand);
  if (literal.isNone() && type.kind() == c10::TypeKind::TensorType)
    return c10::IValue(at::Tensor());
  return literal;
}

/// Pushes all arguments of a call of `op`.
template <class ValueOf>
void push_arguments(torch::jit::Stack& stack, const c10::OperatorHandle& op,
                    const std::vector<Operand>& args, ValueOf&& value) {
  const auto& parameters = op.schema().arguments();
  for (size_t i = 0; i < args.size(); ++i) {
    stack.push_back(to_stack_entry(args[i], *parameters[i].real_type(), value));
  }
}

/// Hands each tensor on the stack to `define(ValueId, at::Tensor&&)` where `results` has a value
/// for it. The stack holds the results of one call, nothing below them.
template <class Define>
void take_results(torch::jit::Stack& stack, const std::vector<Operand>& results, Define&& define) {
  for (size_t i = 0; i < results.size(); ++i) {
    if (const auto* id = std::get_if<ValueId>(&results[i])) {
      define(*id, std::move(stack[i]).toTensor());
    } else if (const auto* list = std::get_if<ValueList>(&results[i])) {
      auto tensors = std::move(stack[i]).toTensorVector();
      for (size_t k = 0; k < list->size(); ++k) {
        if ((*list)[k]) define(*(*list)[k], std::move(tensors[k]));
      }
    }
  }
  stack.clear();
}

}  // namespace foregrad
