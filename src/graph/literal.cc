#include "graph/literal.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/Exception.h>
#include <c10/util/hash.h>
#include <fmt/format.h>

#include "graph/constant.h"
#include "graph/literal_names.h"

namespace foregrad {
namespace {

using c10::TypeKind;

bool is_absent(const c10::IValue& literal) {
  return literal.isNone() || (literal.isTensor() && !literal.toTensor().defined());
}

/// An int beyond int64 has a tag of its own, which `isUnsigned` shares with ordinary ints.
bool is_any_int(const c10::IValue& literal) { return literal.isInt() || literal.isUnsigned(); }

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string int_to_text(int64_t number, TypeKind kind) {
  const auto in_range = [&](auto count) {
    return number >= 0 && number < static_cast<int64_t>(count);
  };
  if (kind == TypeKind::ScalarTypeType && in_range(at::ScalarType::Undefined)) {
    return dtype_name(static_cast<at::ScalarType>(number));
  }
  if (kind == TypeKind::LayoutType && in_range(kLayoutNames.size()))
    return std::string(kLayoutNames[number]);
  if (kind == TypeKind::MemoryFormatType && in_range(kMemoryFormatNames.size())) {
    return std::string(kMemoryFormatNames[number]);
  }
  return fmt::format("{}", number);
}

std::string generator_to_text(const at::Generator& generator,
                              std::vector<at::Generator>& generators) {
  size_t place = 0;
  while (place < generators.size() && generators[place] != generator) ++place;
  if (place == generators.size()) generators.push_back(generator);
  return fmt::format("generator#{}", place);
}

std::string constant_to_text(const at::Tensor& constant) {
  const bool wrapped = constant.unsafeGetTensorImpl()->is_wrapped_number();
  return fmt::format("{}({} {})", wrapped ? "wrapped" : "constant",
                     dtype_name(constant.scalar_type()), element_to_text(constant));
}

const c10::Type* element_type(const c10::Type* type) {
  return type && type->kind() == TypeKind::ListType ? type->containedType(0).get() : nullptr;
}

const c10::Type* without_optional(const c10::Type* type) {
  while (type && type->kind() == TypeKind::OptionalType) type = type->containedType(0).get();
  return type;
}

std::string write(const c10::IValue& literal, const c10::Type* type,
                  std::vector<at::Generator>& generators) {
  type = without_optional(type);
  if (is_absent(literal)) return "none";
  if (literal.isBool()) return literal.toBool() ? "true" : "false";
  if (literal.isInt()) return int_to_text(literal.toInt(), type ? type->kind() : TypeKind::IntType);
  if (literal.isUnsigned()) return fmt::format("{}", literal.toUInt());
  if (literal.isDouble()) return float_to_text(literal.toDouble());
  if (literal.isComplexDouble()) {
    const c10::complex<double> number = literal.toComplexDouble();
    return fmt::format("complex({}, {})", float_to_text(number.real()),
                       float_to_text(number.imag()));
  }
  if (literal.isString()) return quoted_text(literal.toStringRef());
  if (literal.isDevice()) return literal.toDevice().str();
  if (literal.isGenerator()) return generator_to_text(literal.toGenerator(), generators);
  if (literal.isTensor()) return constant_to_text(literal.toTensor());
  TORCH_CHECK(literal.isList(),
              "graph text: expected a number, a string, a device, a generator, a constant tensor "
              "or a list of these as a literal, got a `",
              literal.tagKind(), "`");
  std::string text = "[";
  for (const c10::IValue& entry : literal.toListRef()) {
    if (text.size() > 1) text += ", ";
    text += write(entry, element_type(type), generators);
  }
  return text + "]";
}

bool doubles_equal(double left, double right) {
  if (std::isnan(left) || std::isnan(right)) return std::isnan(left) && std::isnan(right);
  return std::bit_cast<uint64_t>(left) == std::bit_cast<uint64_t>(right);
}

bool lists_equal(c10::ArrayRef<c10::IValue> left, c10::ArrayRef<c10::IValue> right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (!literals_equal(left[i], right[i])) return false;
  }
  return true;
}

size_t double_hash(double number) {
  if (std::isnan(number)) number = std::numeric_limits<double>::quiet_NaN();
  return std::bit_cast<uint64_t>(number);
}

// Numbers the kinds for the hash, so that `1`, `1.0` and `true` differ.
enum class Kind : size_t {
  Absent,
  Bool,
  Int,
  Double,
  Complex,
  String,
  Device,
  Generator,
  Tensor,
  List,
  Other
};

size_t list_hash(c10::ArrayRef<c10::IValue> list) {
  size_t hash = list.size();
  for (const c10::IValue& entry : list) hash = c10::hash_combine(hash, literal_hash(entry));
  return hash;
}

std::pair<Kind, size_t> kind_and_hash(const c10::IValue& literal) {
  if (is_absent(literal)) return {Kind::Absent, 0};
  if (literal.isBool()) return {Kind::Bool, literal.toBool()};
  if (literal.isInt()) return {Kind::Int, static_cast<size_t>(literal.toInt())};
  if (literal.isUnsigned()) return {Kind::Int, static_cast<size_t>(literal.toUInt())};
  if (literal.isDouble()) return {Kind::Double, double_hash(literal.toDouble())};
  if (literal.isComplexDouble()) {
    const c10::complex<double> number = literal.toComplexDouble();
    return {Kind::Complex,
            c10::hash_combine(double_hash(number.real()), double_hash(number.imag()))};
  }
  if (literal.isString())
    return {Kind::String, std::hash<std::string_view>{}(literal.toStringRef())};
  if (literal.isDevice()) return {Kind::Device, std::hash<c10::Device>{}(literal.toDevice())};
  if (literal.isGenerator()) {
    return {Kind::Generator,
            std::hash<const void*>{}(literal.toGenerator().unsafeGetGeneratorImpl())};
  }
  if (literal.isTensor()) return {Kind::Tensor, constant_hash(literal.toTensor())};
  if (literal.isList()) return {Kind::List, list_hash(literal.toListRef())};
  return {Kind::Other, 0};
}

bool list_fits(const c10::IValue& literal, const c10::Type& type) {
  if (!literal.isList()) return false;
  const c10::Type& element = *type.containedType(0);
  // A list of tensors is an operand of its own kind.
  if (without_optional(&element)->kind() == TypeKind::TensorType) return false;
  for (const c10::IValue& entry : literal.toListRef()) {
    if (!literal_fits(entry, element)) return false;
  }
  return true;
}

}  // namespace

std::string literal_to_text(const c10::IValue& literal, const c10::Type& type,
                            std::vector<at::Generator>& generators) {
  return write(literal, &type, generators);
}

std::string literal_to_text(const c10::IValue& literal, std::vector<at::Generator>& generators) {
  return write(literal, nullptr, generators);
}

bool literals_equal(const c10::IValue& left, const c10::IValue& right) {
  if (is_absent(left) || is_absent(right)) return is_absent(left) && is_absent(right);
  if (left.isBool() && right.isBool()) return left.toBool() == right.toBool();
  if (left.isInt() && right.isInt()) return left.toInt() == right.toInt();
  if (is_any_int(left) && is_any_int(right)) {
    return left.isUnsigned() && right.isUnsigned() && left.toUInt() == right.toUInt();
  }
  if (left.isDouble() && right.isDouble()) return doubles_equal(left.toDouble(), right.toDouble());
  if (left.isComplexDouble() && right.isComplexDouble()) {
    const c10::complex<double> a = left.toComplexDouble(), b = right.toComplexDouble();
    return doubles_equal(a.real(), b.real()) && doubles_equal(a.imag(), b.imag());
  }
  if (left.isString() && right.isString()) return left.toStringRef() == right.toStringRef();
  if (left.isDevice() && right.isDevice()) return left.toDevice() == right.toDevice();
  if (left.isGenerator() && right.isGenerator()) return left.toGenerator() == right.toGenerator();
  if (left.isTensor() && right.isTensor())
    return constants_equal(left.toTensor(), right.toTensor());
  if (left.isList() && right.isList()) return lists_equal(left.toListRef(), right.toListRef());
  return left.is(right);  // kinds that have no text are equal only to themselves
}

bool operands_equal(const Operand& left, const Operand& right) {
  if (left.index() != right.index()) return false;
  if (const auto* value = std::get_if<ValueId>(&left)) return *value == std::get<ValueId>(right);
  if (const auto* list = std::get_if<ValueList>(&left)) return *list == std::get<ValueList>(right);
  return literals_equal(std::get<c10::IValue>(left), std::get<c10::IValue>(right));
}

bool operands_equal(const std::vector<Operand>& left, const std::vector<Operand>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const Operand& a, const Operand& b) { return operands_equal(a, b); });
}

size_t literal_hash(const c10::IValue& literal) {
  const auto [kind, hash] = kind_and_hash(literal);
  return c10::hash_combine(static_cast<size_t>(kind), hash);
}

bool literal_fits(const c10::IValue& literal, const c10::Type& type) {
  switch (type.kind()) {
    case TypeKind::OptionalType:
      return literal.isNone() || literal_fits(literal, *type.containedType(0));
    case TypeKind::TensorType:
      return literal.isNone() || (literal.isTensor() && is_constant(literal.toTensor()));
    case TypeKind::ListType: return list_fits(literal, type);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType:
    case TypeKind::QSchemeType: return literal.isInt();
    case TypeKind::FloatType:
    case TypeKind::SymFloatType: return literal.isDouble();
    case TypeKind::BoolType:
    case TypeKind::SymBoolType: return literal.isBool();
    case TypeKind::ComplexType: return literal.isComplexDouble();
    case TypeKind::NumberType:
      return literal.isDouble() || is_any_int(literal) || literal.isComplexDouble() ||
             literal.isBool();
    case TypeKind::StringType: return literal.isString();
    case TypeKind::DeviceObjType: return literal.isDevice();
    case TypeKind::GeneratorType: return literal.isGenerator();
    default: return false;
  }
}

}  // namespace foregrad
