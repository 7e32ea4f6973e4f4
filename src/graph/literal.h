// Literals: writing an IValue that is no tensor of the graph, reading it back, comparing it.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type_base.h>
#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>
#include <vector>

#include "graph/operand.h"

namespace foregrad {

/// Returns the short name of a dtype, for example `f32`, `i64`, `bool`, `c64`, `bf16`.
std::string dtype_name(at::ScalarType dtype);

/// Reads a short dtype name; throws `c10::Error` that lists the known names if there is none such.
at::ScalarType dtype_from_name(std::string_view name);

/// Writes a literal so that `literal_from_text` gives an equal one for the same schema type. `type`
/// is the argument's `real_type()`: it makes names of numbers that stand for a dtype (`f32`), a
/// layout (`strided`) or a memory format (`contiguous`). Floats round-trip exactly. A generator is
/// written as `generator#k`, k its place in `generators` (added if it is new). A constant tensor is
/// written as `constant(f64 2.0)`, or `wrapped(f64 2.0)` if libtorch made it of a C++ number.
/// Throws `c10::Error` for a kind that no text stands for.
std::string literal_to_text(const c10::IValue& literal, const c10::Type& type,
                            std::vector<at::Generator>& generators);

/// The same without a schema type: dtypes, layouts and memory formats are written as numbers.
std::string literal_to_text(const c10::IValue& literal, std::vector<at::Generator>& generators);

/// Reads a literal of the given schema type (`real_type()`). Throws `c10::Error` with the text and
/// what was expected.
c10::IValue literal_from_text(std::string_view text, const c10::TypePtr& type,
                              const std::vector<at::Generator>& generators);

/// Compares two literals: same kind and same value; NaN equals NaN, 0.0 differs from -0.0; constant
/// tensors by dtype, wrapped flag and bits; generators by identity. An undefined tensor equals
/// `None`.
bool literals_equal(const c10::IValue& left, const c10::IValue& right);

/// Compares two operands: same kind, same values, equal literals.
bool operands_equal(const Operand& left, const Operand& right);
bool operands_equal(const std::vector<Operand>& left, const std::vector<Operand>& right);

/// Hashes a literal so that equal literals hash alike.
size_t literal_hash(const c10::IValue& literal);

/// Whether the literal may stand for an argument of the given schema type (`real_type()`) and has a
/// text.
bool literal_fits(const c10::IValue& literal, const c10::Type& type);

}  // namespace foregrad
