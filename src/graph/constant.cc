#include "graph/constant.h"

#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <type_traits>

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <c10/util/complex.h>
#include <c10/util/hash.h>
#include <fmt/format.h>

namespace foregrad {
namespace {

// What can be written as `constant(...)` is at most a complex number of doubles.
constexpr size_t kLargestElementBytes = 16;
constexpr std::string_view kNumberCharacters = "+-.";

template <class T>
struct ElementType {
  using type = T;
};

/// Calls `visit(ElementType<T>)` for dtypes whose elements are written as numbers; returns false
/// for others.
template <class Visitor>
bool with_element_type(at::ScalarType dtype, Visitor&& visit) {
  switch (dtype) {
    case at::kBool: visit(ElementType<bool>{}); return true;
    case at::kByte: visit(ElementType<uint8_t>{}); return true;
    case at::kChar: visit(ElementType<int8_t>{}); return true;
    case at::kShort: visit(ElementType<int16_t>{}); return true;
    case at::kInt: visit(ElementType<int32_t>{}); return true;
    case at::kLong: visit(ElementType<int64_t>{}); return true;
    case at::kUInt16: visit(ElementType<uint16_t>{}); return true;
    case at::kUInt32: visit(ElementType<uint32_t>{}); return true;
    case at::kUInt64: visit(ElementType<uint64_t>{}); return true;
    case at::kHalf: visit(ElementType<c10::Half>{}); return true;
    case at::kBFloat16: visit(ElementType<c10::BFloat16>{}); return true;
    case at::kFloat: visit(ElementType<float>{}); return true;
    case at::kDouble: visit(ElementType<double>{}); return true;
    case at::kComplexFloat: visit(ElementType<c10::complex<float>>{}); return true;
    case at::kComplexDouble: visit(ElementType<c10::complex<double>>{}); return true;
    default: return false;
  }
}

template <class T>
constexpr bool is_complex_number =
    std::is_same_v<T, c10::complex<float>> || std::is_same_v<T, c10::complex<double>>;

template <class T>
std::string number_to_text(T number) {
  if constexpr (std::is_same_v<T, bool>) {
    return number ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return fmt::format("{}", number);
  } else if constexpr (is_complex_number<T>) {
    return fmt::format("complex({}, {})", float_to_text(number.real()),
                       float_to_text(number.imag()));
  } else if constexpr (std::is_same_v<T, double>) {
    return float_to_text(number);
  } else {
    return float_to_text(static_cast<float>(number));
  }
}

template <class T>
T parse_number(std::string_view text, Scanner& scanner, size_t start) {
  T number{};
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range && std::is_floating_point_v<T>) return number;
  if (error != std::errc() || end != text.data() + text.size()) {
    scanner.fail_at(start, std::is_integral_v<T> ? "an integer in the dtype's range" : "a number");
  }
  return number;
}

template <class T>
T read_number(Scanner& scanner) {
  if constexpr (std::is_same_v<T, bool>) {
    if (scanner.accept("true")) return true;
    if (scanner.accept("false")) return false;
    scanner.fail("`true` or `false`");
  } else if constexpr (is_complex_number<T>) {
    using Part = typename T::value_type;
    scanner.expect("complex(");
    const Part real = read_number<Part>(scanner);
    scanner.expect(",");
    const Part imaginary = read_number<Part>(scanner);
    scanner.expect(")");
    return T(real, imaginary);
  } else if constexpr (std::is_integral_v<T> || std::is_floating_point_v<T>) {
    scanner.peek();  // skips blanks, so that an error points at the number
    const size_t start = scanner.position();
    return parse_number<T>(scanner.run(kNumberCharacters, "a number"), scanner, start);
  } else {
    return static_cast<T>(read_number<float>(scanner));
  }
}

template <class Float>
std::string write_float(Float number) {
  std::string text = fmt::format("{}", number);
  if (text == "-nan") return "nan";
  const bool is_seen_to_be_float = text.find_first_of(".einf") != text.npos;
  return is_seen_to_be_float ? text : text + ".0";
}

void read_bytes(Scanner& scanner, unsigned char* bytes, size_t count) {
  scanner.peek();
  const size_t start = scanner.position();
  const std::string_view digits = scanner.run("", "hexadecimal digits");
  if (digits.size() != 2 * count)
    scanner.fail_at(start, fmt::format("{} hexadecimal digits", 2 * count));
  for (size_t i = 0; i < count; ++i) {
    const char* pair = digits.data() + 2 * i;
    const auto [end, error] = std::from_chars(pair, pair + 2, bytes[i], 16);
    if (error != std::errc() || end != pair + 2) scanner.fail_at(start, "hexadecimal digits");
  }
}

}  // namespace

std::string float_to_text(double number) { return write_float(number); }
std::string float_to_text(float number) { return write_float(number); }
double read_double(Scanner& scanner) { return read_number<double>(scanner); }
float read_float(Scanner& scanner) { return read_number<float>(scanner); }

bool is_constant(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.device().is_cpu() &&
         tensor.dim() == 0 && !tensor.is_conj() && !tensor.is_neg();
}

std::string element_to_text(const at::Tensor& constant) {
  TORCH_CHECK(is_constant(constant),
              "a tensor literal must be a zero-dimensional CPU tensor without lazy conjugate or "
              "negative bit");
  const at::ScalarType dtype = constant.scalar_type();
  const void* data = constant.const_data_ptr();
  const size_t count = constant.element_size();
  std::string text;
  with_element_type(dtype, [&]<class T>(ElementType<T>) {
    T number;
    std::memcpy(&number, data, sizeof(T));
    std::string candidate = number_to_text(number);
    Scanner scanner(candidate, "constant");
    const T back = read_number<T>(scanner);
    if (std::memcmp(&back, data, sizeof(T)) == 0) text = std::move(candidate);
  });
  if (!text.empty()) return text;
  text = "bytes ";
  for (size_t i = 0; i < count; ++i)
    text += fmt::format("{:02x}", static_cast<const unsigned char*>(data)[i]);
  return text;
}

at::Tensor read_element(Scanner& scanner, at::ScalarType dtype) {
  at::Tensor constant = at::empty({}, at::TensorOptions().dtype(dtype).device(at::kCPU));
  void* data = constant.mutable_data_ptr();
  const size_t count = constant.element_size();
  if (scanner.accept("bytes")) {
    std::array<unsigned char, kLargestElementBytes> bytes{};
    read_bytes(scanner, bytes.data(), count);
    std::memcpy(data, bytes.data(), count);
    return constant;
  }
  const bool is_number = with_element_type(dtype, [&]<class T>(ElementType<T>) {
    const T number = read_number<T>(scanner);
    std::memcpy(data, &number, sizeof(T));
  });
  if (!is_number) scanner.fail("`bytes`");
  return constant;
}

bool constants_equal(const at::Tensor& left, const at::Tensor& right) {
  if (left.is_same(right)) return true;
  if (!is_constant(left) || !is_constant(right)) return false;
  return left.scalar_type() == right.scalar_type() &&
         left.unsafeGetTensorImpl()->is_wrapped_number() ==
             right.unsafeGetTensorImpl()->is_wrapped_number() &&
         std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.element_size()) == 0;
}

size_t constant_hash(const at::Tensor& constant) {
  if (!is_constant(constant)) return std::hash<const void*>{}(constant.unsafeGetTensorImpl());
  const std::string_view bytes(static_cast<const char*>(constant.const_data_ptr()),
                               constant.element_size());
  return c10::hash_combine(static_cast<size_t>(constant.scalar_type()),
                           std::hash<std::string_view>{}(bytes));
}

}  // namespace foregrad
