#include <c10/core/ScalarType.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "graph/literal.h"

namespace foregrad {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr auto kDtypeCount = static_cast<int>(at::ScalarType::Undefined);

TEST(DtypeName, EveryDtypeRoundTripsAndNamesDiffer) {
  std::set<std::string> names;
  for (int i = 0; i < kDtypeCount; ++i) {
    const auto dtype = static_cast<at::ScalarType>(i);
    names.insert(dtype_name(dtype));
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype) << dtype_name(dtype);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kDtypeCount));
}

TEST(DtypeName, NamesSayWidthAndKind) {
  EXPECT_EQ(dtype_name(at::kFloat), "f32");
  EXPECT_EQ(dtype_name(at::kDouble), "f64");
  EXPECT_EQ(dtype_name(at::kHalf), "f16");
  EXPECT_EQ(dtype_name(at::kBFloat16), "bf16");
  EXPECT_EQ(dtype_name(at::kByte), "u8");
  EXPECT_EQ(dtype_name(at::kChar), "i8");
  EXPECT_EQ(dtype_name(at::kShort), "i16");
  EXPECT_EQ(dtype_name(at::kInt), "i32");
  EXPECT_EQ(dtype_name(at::kLong), "i64");
  EXPECT_EQ(dtype_name(at::kBool), "bool");
  EXPECT_EQ(dtype_name(at::kComplexHalf), "c32");
  EXPECT_EQ(dtype_name(at::kComplexFloat), "c64");
  EXPECT_EQ(dtype_name(at::kComplexDouble), "c128");
  EXPECT_EQ(dtype_name(at::kUInt16), "u16");
  EXPECT_EQ(dtype_name(at::kUInt32), "u32");
  EXPECT_EQ(dtype_name(at::kUInt64), "u64");
  EXPECT_EQ(dtype_name(at::kFloat8_e4m3fn), "f8e4m3fn");
  EXPECT_EQ(dtype_name(at::kFloat8_e5m2), "f8e5m2");
  EXPECT_EQ(dtype_name(at::kFloat8_e4m3fnuz), "f8e4m3fnuz");
  EXPECT_EQ(dtype_name(at::kFloat8_e5m2fnuz), "f8e5m2fnuz");
  EXPECT_EQ(dtype_name(at::kQInt8), "qi8");
  EXPECT_EQ(dtype_name(at::kQUInt8), "qu8");
  EXPECT_EQ(dtype_name(at::kQInt32), "qi32");
  EXPECT_EQ(dtype_name(at::ScalarType::Bits16), "bits16");
  EXPECT_EQ(dtype_name(at::ScalarType::UInt1), "u1");
  EXPECT_EQ(dtype_name(at::ScalarType::Int7), "i7");
  EXPECT_EQ(dtype_name(at::ScalarType::Float4_e2m1fn_x2), "f4e2m1fnx2");
}

TEST(DtypeName, UnknownNameListsTheKnownOnes) {
  EXPECT_THAT([] { dtype_from_name("float"); },
              ThrowsMessage<c10::Error>(
                  AllOf(HasSubstr("got `float`"), HasSubstr("f32"), HasSubstr("bf16"))));
}

TEST(DtypeName, UndefinedDtypeIsAnError) {
  EXPECT_THROW(dtype_name(at::ScalarType::Undefined), c10::Error);
}

}  // namespace
}  // namespace foregrad
