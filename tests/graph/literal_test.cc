#include "graph/literal.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/jit_type.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace foregrad {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Case {
  c10::IValue literal;
  c10::TypePtr type;
  std::string text;
};

at::Tensor wrapped(at::Tensor tensor) {
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

template <class T>
c10::IValue list_of(std::initializer_list<T> entries) {
  c10::List<T> list;
  for (const T& entry : entries) list.push_back(entry);
  return list;
}

c10::IValue scalars(std::initializer_list<c10::IValue> entries) {
  c10::impl::GenericList list(c10::NumberType::get());
  for (const c10::IValue& entry : entries) list.push_back(entry);
  return list;
}

std::vector<Case> numbers() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {
      {c10::IValue(true), c10::BoolType::get(), "true"},
      {c10::IValue(false), c10::BoolType::get(), "false"},
      {c10::IValue(7), c10::IntType::get(), "7"},
      {c10::IValue(std::numeric_limits<int64_t>::min()), c10::IntType::get(),
       "-9223372036854775808"},
      {c10::IValue(7), c10::SymIntType::get(), "7"},
      {c10::IValue(1.0), c10::FloatType::get(), "1.0"},
      {c10::IValue(-0.0), c10::FloatType::get(), "-0.0"},
      {c10::IValue(0.1), c10::FloatType::get(), "0.1"},
      {c10::IValue(5e-324), c10::FloatType::get(), "5e-324"},
      {c10::IValue(kInfinity), c10::FloatType::get(), "inf"},
      {c10::IValue(-kInfinity), c10::FloatType::get(), "-inf"},
      {c10::IValue(std::numeric_limits<double>::quiet_NaN()), c10::FloatType::get(), "nan"},
      {c10::IValue(2), c10::NumberType::get(), "2"},
      {c10::IValue(2.0), c10::NumberType::get(), "2.0"},
      {c10::IValue(kInfinity), c10::NumberType::get(), "inf"},
      {c10::IValue(true), c10::NumberType::get(), "true"},
      {c10::IValue(false), c10::NumberType::get(), "false"},
      {c10::IValue(uint64_t{18446744073709551615u}), c10::NumberType::get(),
       "18446744073709551615"},
      {c10::IValue(c10::complex<double>(0.5, -kInfinity)), c10::NumberType::get(),
       "complex(0.5, -inf)"},
      {c10::IValue(c10::complex<double>(0.5, 1)), c10::ComplexType::get(), "complex(0.5, 1.0)"},
  };
}

std::vector<Case> names() {
  return {
      {c10::IValue(), c10::OptionalType::create(c10::IntType::get()), "none"},
      {c10::IValue(3), c10::OptionalType::create(c10::IntType::get()), "3"},
      {c10::IValue(at::kFloat), c10::ScalarTypeType::get(), "f32"},
      {c10::IValue(at::kBool), c10::OptionalType::create(c10::ScalarTypeType::get()), "bool"},
      {c10::IValue(at::kSparseCsr), c10::LayoutType::get(), "sparse_csr"},
      {c10::IValue(at::kStrided), c10::OptionalType::create(c10::LayoutType::get()), "strided"},
      {c10::IValue(at::MemoryFormat::ChannelsLast3d), c10::MemoryFormatType::get(),
       "channels_last_3d"},
      {c10::IValue(at::MemoryFormat::Contiguous), c10::MemoryFormatType::get(), "contiguous"},
      {c10::IValue("none"), c10::StringType::get(), "\"none\""},
      {c10::IValue("a \"b\" \\ \n\t\x80, #)]"), c10::StringType::get(),
       R"("a \"b\" \\ \n\x09\x80, #)]")"},
      {c10::IValue(""), c10::StringType::get(), "\"\""},
      {c10::IValue(c10::Device("cpu")), c10::DeviceObjType::get(), "cpu"},
      {c10::IValue(c10::Device("cuda:1")), c10::DeviceObjType::get(), "cuda:1"},
  };
}

std::vector<Case> lists_and_tensors() {
  const auto list = [](const c10::TypePtr& element) { return c10::ListType::create(element); };
  c10::impl::GenericList optional_scalars(c10::OptionalType::create(c10::NumberType::get()));
  optional_scalars.push_back(c10::IValue());
  optional_scalars.push_back(c10::IValue(1.0));
  return {
      {list_of<int64_t>({1, -2}), list(c10::IntType::get()), "[1, -2]"},
      {list_of<int64_t>({}), list(c10::IntType::get()), "[]"},
      {list_of<int64_t>({3}), list(c10::SymIntType::get()), "[3]"},
      {list_of<double>({1, 0.5}), list(c10::FloatType::get()), "[1.0, 0.5]"},
      {list_of<bool>({true, false}), list(c10::BoolType::get()), "[true, false]"},
      {scalars({1, 1.0, true}), list(c10::NumberType::get()), "[1, 1.0, true]"},
      {list_of<std::string>({"a", "]"}), list(c10::StringType::get()), "[\"a\", \"]\"]"},
      {list_of<int64_t>({1}), c10::OptionalType::create(list(c10::IntType::get())), "[1]"},
      {optional_scalars, list(c10::OptionalType::create(c10::NumberType::get())), "[none, 1.0]"},
      {at::scalar_tensor(2.0, at::kDouble), c10::TensorType::get(), "constant(f64 2.0)"},
      {wrapped(at::scalar_tensor(2, at::kLong)), c10::TensorType::get(), "wrapped(i64 2)"},
      {at::scalar_tensor(true, at::kBool), c10::OptionalType::create(c10::TensorType::get()),
       "constant(bool true)"},
      {wrapped(at::scalar_tensor(0.1, at::kFloat)), c10::TensorType::get(), "wrapped(f32 0.1)"},
      {c10::IValue(), c10::TensorType::get(), "none"},
  };
}

TEST(Literal, EveryKindIsWrittenAndReadBack) {
  std::vector<at::Generator> generators;
  for (const auto& cases : {numbers(), names(), lists_and_tensors()}) {
    for (const Case& one : cases) {
      const std::string text = literal_to_text(one.literal, *one.type, generators);
      EXPECT_EQ(text, one.text);
      const c10::IValue back = literal_from_text(text, one.type, generators);
      EXPECT_TRUE(literals_equal(back, one.literal)) << text;
      EXPECT_EQ(literal_hash(back), literal_hash(one.literal)) << text;
      EXPECT_EQ(back.tagKind(), one.literal.tagKind()) << text;
      EXPECT_TRUE(literal_fits(back, *one.type)) << text;
    }
  }
}

TEST(Literal, WrittenWithoutATypeItIsReadBackToo) {
  std::vector<at::Generator> generators;
  for (const auto& cases : {numbers(), names(), lists_and_tensors()}) {
    for (const Case& one : cases) {
      const std::string text = literal_to_text(one.literal, generators);
      EXPECT_TRUE(literals_equal(literal_from_text(text, one.type, generators), one.literal))
          << text;
    }
  }
  EXPECT_EQ(literal_to_text(c10::IValue(at::kDouble), generators), "7");
}

TEST(Literal, GeneratorsAreNumberedByIdentity) {
  const at::Generator first = at::detail::createCPUGenerator(1);
  const at::Generator second = at::detail::createCPUGenerator(1);
  const c10::TypePtr type = c10::OptionalType::create(c10::GeneratorType::get());
  std::vector<at::Generator> generators;
  EXPECT_EQ(literal_to_text(first, *type, generators), "generator#0");
  EXPECT_EQ(literal_to_text(second, *type, generators), "generator#1");
  EXPECT_EQ(literal_to_text(first, *type, generators), "generator#0");
  ASSERT_EQ(generators.size(), 2u);
  EXPECT_TRUE(literals_equal(literal_from_text("generator#1", type, generators), second));
  EXPECT_FALSE(literals_equal(first, second));
  EXPECT_TRUE(literal_from_text("none", type, generators).isNone());
  EXPECT_THAT([&] { literal_from_text("generator#2", type, generators); },
              ThrowsMessage<c10::Error>(HasSubstr("one of the 2 generators")));
}

TEST(Literal, NoTwoDifferentLiteralsAreEqual) {
  std::vector<c10::IValue> different = {c10::IValue(),
                                        true,
                                        false,
                                        1,
                                        1.0,
                                        0,
                                        0.0,
                                        -0.0,
                                        c10::complex<double>(1, 0),
                                        c10::complex<double>(0, 1),
                                        "1",
                                        "cpu",
                                        c10::Device("cpu"),
                                        c10::Device("meta"),
                                        list_of<int64_t>({}),
                                        list_of<int64_t>({1}),
                                        list_of<int64_t>({1, 1}),
                                        list_of<double>({1}),
                                        list_of<bool>({true}),
                                        at::scalar_tensor(1, at::kLong),
                                        wrapped(at::scalar_tensor(1, at::kLong)),
                                        at::scalar_tensor(1, at::kInt),
                                        at::scalar_tensor(2, at::kLong),
                                        c10::IValue(uint64_t{18446744073709551615u}),
                                        -1};
  for (size_t i = 0; i < different.size(); ++i) {
    for (size_t k = 0; k < different.size(); ++k) {
      EXPECT_EQ(literals_equal(different[i], different[k]), i == k) << i << " " << k;
    }
  }
}

TEST(Literal, NanEqualsNanAndHashesAlike) {
  const c10::IValue left = std::numeric_limits<double>::quiet_NaN(),
                    right = -std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(literals_equal(left, right));
  EXPECT_EQ(literal_hash(left), literal_hash(right));
}

TEST(Literal, AnUndefinedTensorIsAbsent) {
  EXPECT_TRUE(literals_equal(c10::IValue(at::Tensor()), c10::IValue()));
  EXPECT_EQ(literal_hash(c10::IValue(at::Tensor())), literal_hash(c10::IValue()));
  EXPECT_FALSE(literals_equal(at::scalar_tensor(1), c10::IValue()));
}

TEST(Literal, KindsWithoutTextAreErrors) {
  std::vector<at::Generator> generators;
  const c10::IValue tuple = c10::ivalue::Tuple::create({c10::IValue(1)});
  EXPECT_THAT([&] { literal_to_text(tuple, generators); },
              ThrowsMessage<c10::Error>(HasSubstr("got a `Tuple`")));
  EXPECT_THAT([&] { literal_to_text(at::ones({2}), generators); },
              ThrowsMessage<c10::Error>(HasSubstr("zero-dimensional CPU")));
  EXPECT_THAT([&] { literal_from_text("1", c10::StreamObjType::get(), generators); },
              ThrowsMessage<c10::Error>(HasSubstr("`Stream`")));
  EXPECT_TRUE(literals_equal(tuple, tuple));
}

TEST(Literal, FitsOnlyItsSchemaType) {
  EXPECT_FALSE(literal_fits(1, *c10::FloatType::get()));
  EXPECT_FALSE(literal_fits(1.0, *c10::IntType::get()));
  EXPECT_FALSE(literal_fits(true, *c10::IntType::get()));
  EXPECT_FALSE(literal_fits(1, *c10::BoolType::get()));
  EXPECT_FALSE(literal_fits("1", *c10::NumberType::get()));
  EXPECT_FALSE(literal_fits(c10::IValue(), *c10::IntType::get()));
  EXPECT_FALSE(literal_fits(c10::IValue(at::Tensor()), *c10::TensorType::get()));
  EXPECT_FALSE(literal_fits(at::ones({2}), *c10::TensorType::get()));
  EXPECT_FALSE(literal_fits(list_of<double>({1}), *c10::ListType::ofInts()));
  EXPECT_FALSE(literal_fits(1, *c10::ListType::ofInts()));
  EXPECT_FALSE(literal_fits(list_of<at::Tensor>({}), *c10::ListType::ofTensors()));
}

TEST(Literal, OperandsAreEqualByKindAndContent) {
  const Operand value = ValueId{1}, list = ValueList{ValueId{1}, std::nullopt},
                literal = c10::IValue(1);
  EXPECT_TRUE(operands_equal(value, ValueId{1}));
  EXPECT_FALSE(operands_equal(value, ValueId{2}));
  EXPECT_TRUE(operands_equal(list, ValueList{ValueId{1}, std::nullopt}));
  EXPECT_FALSE(operands_equal(list, ValueList{ValueId{1}}));
  EXPECT_TRUE(operands_equal(literal, c10::IValue(1)));
  EXPECT_FALSE(operands_equal(literal, c10::IValue(1.0)));
  EXPECT_FALSE(operands_equal(value, literal));
  EXPECT_FALSE(operands_equal(value, list));
}

}  // namespace
}  // namespace foregrad
