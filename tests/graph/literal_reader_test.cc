#include "graph/literal_reader.h"

#include <ATen/ATen.h>
#include <ATen/core/jit_type.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/literal.h"

namespace foregrad {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void expect_error(std::string_view text, const c10::TypePtr& type, const std::string& message) {
  EXPECT_THAT([&] { literal_from_text(text, type, {}); },
              ThrowsMessage<c10::Error>(HasSubstr(message)))
      << text;
}

TEST(LiteralReader, StopsBehindTheLiteral) {
  Scanner scanner("[1, 2], 3", "text");
  EXPECT_EQ(read_literal(scanner, *c10::ListType::ofInts(), {}).toIntVector(),
            (std::vector<int64_t>{1, 2}));
  scanner.expect(",");
  EXPECT_EQ(read_literal(scanner, *c10::IntType::get(), {}).toInt(), 3);
}

TEST(LiteralReader, TakesIntegersWhereFloatsAreExpected) {
  const c10::IValue two = literal_from_text("2", c10::FloatType::get(), {});
  ASSERT_TRUE(two.isDouble());
  EXPECT_EQ(two.toDouble(), 2.0);
}

TEST(LiteralReader, SymIntListsAreIntLists) {
  EXPECT_TRUE(
      literal_from_text("[2]", c10::ListType::create(c10::SymIntType::get()), {}).isIntList());
  EXPECT_TRUE(
      literal_from_text("[]", c10::ListType::create(c10::SymIntType::get()), {}).isIntList());
  EXPECT_TRUE(literal_from_text("[2]", c10::ListType::ofFloats(), {}).isDoubleList());
  EXPECT_TRUE(literal_from_text("[true]", c10::ListType::ofBools(), {}).isBoolList());
}

TEST(LiteralReader, MalformedLiteralsNameWhatWasExpected) {
  expect_error("x", c10::IntType::get(),
               "literal `x`, line 1, column 1: expected an integer, got `x`");
  expect_error("1.5", c10::IntType::get(), "column 2: expected the end of the literal, got `.`");
  expect_error("9223372036854775808", c10::IntType::get(), "an integer");
  expect_error("99999999999999999999", c10::NumberType::get(), "an integer of 64 bits");
  expect_error("one", c10::FloatType::get(), "a number");
  expect_error("1.0.0", c10::FloatType::get(), "a number");
  expect_error("yes", c10::BoolType::get(), "`true` or `false`");
  expect_error("trueish", c10::BoolType::get(), "`true` or `false`");
  expect_error("complex(1.0)", c10::ComplexType::get(), "expected `,`");
  expect_error("float", c10::ScalarTypeType::get(), "a dtype");
  expect_error("dense", c10::LayoutType::get(), "a layout (strided, sparse");
  expect_error("nchw", c10::MemoryFormatType::get(), "a memory format (contiguous, preserve");
  expect_error("toaster:0", c10::DeviceObjType::get(), "a device");
  expect_error("generator", c10::GeneratorType::get(), "`generator#`");
  expect_error("tensor(1)", c10::TensorType::get(), "`constant(`");
  expect_error("constant(f32 x)", c10::TensorType::get(), "a number");
  expect_error("none", c10::IntType::get(), "an integer");
}

TEST(LiteralReader, MalformedListsAndStringsAreErrors) {
  expect_error("1", c10::ListType::ofInts(), "expected `[`");
  expect_error("[1 2]", c10::ListType::ofInts(), "`,` or `]`");
  expect_error("[1,", c10::ListType::ofInts(), "the end of the text");
  expect_error("text", c10::StringType::get(), "expected `\"`");
  expect_error("\"text", c10::StringType::get(), "the end of the text");
  expect_error("\"\\q\"", c10::StringType::get(), "after `\\`");
  expect_error("\"\\xzz\"", c10::StringType::get(), "two hexadecimal digits");
}

}  // namespace
}  // namespace foregrad
