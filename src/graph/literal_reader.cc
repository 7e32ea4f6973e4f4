#include "graph/literal_reader.h"

#include <charconv>
#include <span>

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/constant.h"
#include "graph/literal.h"
#include "graph/literal_names.h"

namespace foregrad {
namespace {

using c10::TypeKind;

bool starts_number(char c) { return (c >= '0' && c <= '9') || c == '-' || c == '+'; }

/// Reads a name and returns its place in `names`. A plain number is taken as it is.
c10::IValue read_named_int(Scanner& scanner, std::span<const std::string_view> names,
                           std::string_view expected) {
  if (starts_number(scanner.peek())) return scanner.integer(expected);
  const size_t start = scanner.position();
  const std::string_view name = scanner.word(expected);
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<int64_t>(i);
  }
  scanner.fail_at(start, fmt::format("{} ({})", expected, fmt::join(names, ", ")));
}

at::ScalarType read_dtype(Scanner& scanner) {
  scanner.peek();
  const size_t start = scanner.position();
  const std::string_view name = scanner.word("a dtype");
  try {
    return dtype_from_name(name);
  } catch (const c10::Error&) {
    scanner.fail_at(start, "a dtype, for example `f32`");
  }
}

c10::IValue read_bool(Scanner& scanner) {
  if (scanner.accept("true")) return true;
  if (scanner.accept("false")) return false;
  scanner.fail("`true` or `false`");
}

c10::IValue read_complex(Scanner& scanner) {
  scanner.expect("complex(");
  const double real = read_double(scanner);
  scanner.expect(",");
  const double imaginary = read_double(scanner);
  scanner.expect(")");
  return c10::complex<double>(real, imaginary);
}

/// Reads a `Scalar`: the text tells the kind of the number.
c10::IValue read_scalar(Scanner& scanner) {
  const char first = scanner.peek();
  if (first == 't' || first == 'f') return read_bool(scanner);
  if (first == 'c') return read_complex(scanner);
  const size_t start = scanner.position();
  const std::string_view text = scanner.run("+-.", "a number");
  if (text.find_first_not_of("0123456789-") != text.npos) {
    scanner.seek(start);
    return read_double(scanner);
  }
  const char* end = text.data() + text.size();
  int64_t number = 0;
  if (const auto read = std::from_chars(text.data(), end, number);
      read.ec == std::errc() && read.ptr == end) {
    return number;
  }
  uint64_t large = 0;
  if (const auto read = std::from_chars(text.data(), end, large);
      read.ec == std::errc() && read.ptr == end) {
    return large;
  }
  scanner.fail_at(start, "an integer of 64 bits");
}

c10::IValue read_string(Scanner& scanner) {
  constexpr std::string_view kHex = "two hexadecimal digits";
  scanner.expect("\"");
  std::string text;
  for (char c = scanner.next_character("`\"`"); c != '"'; c = scanner.next_character("`\"`")) {
    if (c != '\\') {
      text += c;
      continue;
    }
    const size_t start = scanner.position();
    const char escape = scanner.next_character("an escape");
    if (escape == 'n') {
      text += '\n';
    } else if (escape == '"' || escape == '\\') {
      text += escape;
    } else if (escape == 'x') {
      const char digits[2] = {scanner.next_character(kHex), scanner.next_character(kHex)};
      uint8_t byte = 0;
      const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
      if (error != std::errc() || end != digits + 2) scanner.fail_at(start + 1, kHex);
      text += static_cast<char>(byte);
    } else {
      scanner.fail_at(start, "`n`, `x`, `\\` or `\"` after `\\`");
    }
  }
  return text;
}

c10::IValue read_device(Scanner& scanner) {
  scanner.peek();
  const size_t start = scanner.position();
  const std::string name(scanner.run(":", "a device"));
  try {
    return c10::Device(name);
  } catch (const c10::Error&) {
    scanner.fail_at(start, "a device, for example `cpu` or `cuda:0`");
  }
}

c10::IValue read_generator(Scanner& scanner, const std::vector<at::Generator>& generators) {
  scanner.expect("generator#");
  const size_t start = scanner.position();
  const uint32_t place = scanner.index("the place of a generator");
  if (place >= generators.size()) {
    scanner.fail_at(start,
                    fmt::format("one of the {} generators that were given", generators.size()));
  }
  return generators[place];
}

c10::IValue read_constant(Scanner& scanner) {
  const bool wrapped = scanner.accept("wrapped(");
  if (!wrapped && !scanner.accept("constant("))
    scanner.fail("`%`, `constant(`, `wrapped(` or `none`");
  at::Tensor constant = read_element(scanner, read_dtype(scanner));
  scanner.expect(")");
  constant.unsafeGetTensorImpl()->set_wrapped_number(wrapped);
  return constant;
}

/// The element type that the dispatcher expects of a list: `SymInt` lists are int lists.
c10::TypePtr stored_element_type(const c10::TypePtr& type) {
  return type->kind() == TypeKind::SymIntType ? c10::TypePtr(c10::IntType::get()) : type;
}

c10::IValue read_list(Scanner& scanner, const c10::Type& type,
                      const std::vector<at::Generator>& generators) {
  const c10::TypePtr& element = type.containedType(0);
  c10::impl::GenericList list(stored_element_type(element));
  scanner.expect("[");
  if (scanner.accept("]")) return list;
  do {
    list.push_back(read_literal(scanner, *element, generators));
  } while (scanner.accept(","));
  if (!scanner.accept("]")) scanner.fail("`,` or `]`");
  return list;
}

}  // namespace

c10::IValue read_literal(Scanner& scanner, const c10::Type& type,
                         const std::vector<at::Generator>& generators) {
  switch (type.kind()) {
    case TypeKind::OptionalType:
      if (scanner.accept("none")) return c10::IValue();
      return read_literal(scanner, *type.containedType(0), generators);
    case TypeKind::TensorType:
      if (scanner.accept("none")) return c10::IValue();
      return read_constant(scanner);
    case TypeKind::ListType: return read_list(scanner, type, generators);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
    case TypeKind::QSchemeType: return scanner.integer("an integer");
    case TypeKind::ScalarTypeType:
      if (starts_number(scanner.peek())) return scanner.integer("a dtype");
      return static_cast<int64_t>(read_dtype(scanner));
    case TypeKind::LayoutType: return read_named_int(scanner, kLayoutNames, "a layout");
    case TypeKind::MemoryFormatType:
      return read_named_int(scanner, kMemoryFormatNames, "a memory format");
    case TypeKind::FloatType:
    case TypeKind::SymFloatType: return read_double(scanner);
    case TypeKind::BoolType:
    case TypeKind::SymBoolType: return read_bool(scanner);
    case TypeKind::ComplexType: return read_complex(scanner);
    case TypeKind::NumberType: return read_scalar(scanner);
    case TypeKind::StringType: return read_string(scanner);
    case TypeKind::DeviceObjType: return read_device(scanner);
    case TypeKind::GeneratorType: return read_generator(scanner, generators);
    default:
      scanner.fail(fmt::format("an argument whose type graph text can express, not `{}`",
                               type.annotation_str()));
  }
}

c10::IValue literal_from_text(std::string_view text, const c10::TypePtr& type,
                              const std::vector<at::Generator>& generators) {
  const std::string subject = fmt::format("literal `{}`", text);
  Scanner scanner(text, subject);
  c10::IValue literal = read_literal(scanner, *type, generators);
  if (!scanner.at_end()) scanner.fail("the end of the literal");
  return literal;
}

}  // namespace foregrad
