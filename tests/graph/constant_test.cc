#include "graph/constant.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace foregrad {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor read(std::string_view text, at::ScalarType dtype) {
  Scanner scanner(text, "test");
  return read_element(scanner, dtype);
}

TEST(Constant, FloatsKeepAMark) {
  EXPECT_EQ(float_to_text(1.0), "1.0");
  EXPECT_EQ(float_to_text(-0.0), "-0.0");
  EXPECT_EQ(float_to_text(0.1), "0.1");
  EXPECT_EQ(float_to_text(0.1f), "0.1");
  EXPECT_EQ(float_to_text(1e300), "1e+300");
  EXPECT_EQ(float_to_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(float_to_text(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(float_to_text(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(float_to_text(-std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Constant, RandomDoublesRoundTrip) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto number = std::bit_cast<double>(random());
    const std::string text = float_to_text(number);
    Scanner scanner(text, "test");
    const double back = read_double(scanner);
    if (std::isnan(number)) {
      EXPECT_TRUE(std::isnan(back));
    } else {
      EXPECT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(number)) << text;
    }
  }
}

TEST(Constant, RandomFloatsRoundTrip) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto number = std::bit_cast<float>(static_cast<uint32_t>(random()));
    const std::string text = float_to_text(number);
    Scanner scanner(text, "test");
    const float back = read_float(scanner);
    EXPECT_TRUE(std::isnan(number)
                    ? std::isnan(back)
                    : std::bit_cast<uint32_t>(back) == std::bit_cast<uint32_t>(number))
        << text;
  }
}

TEST(Constant, EveryHalfAndBFloat16RoundTripsBitForBit) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    for (uint32_t bits = 0; bits < 0x10000; bits += 7) {
      at::Tensor constant = at::empty({}, dtype);
      *static_cast<uint16_t*>(constant.mutable_data_ptr()) = static_cast<uint16_t>(bits);
      EXPECT_TRUE(constants_equal(read(element_to_text(constant), dtype), constant))
          << element_to_text(constant);
    }
  }
}

TEST(Constant, IntegersAtTheEndsOfTheirRangeRoundTrip) {
  for (const at::ScalarType dtype : {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong}) {
    for (const bool top : {false, true}) {
      const at::Tensor constant = at::scalar_tensor(0, dtype);
      std::memset(constant.mutable_data_ptr(), top ? 0x7f : 0x80, constant.element_size());
      EXPECT_TRUE(constants_equal(read(element_to_text(constant), dtype), constant))
          << element_to_text(constant);
    }
  }
  EXPECT_EQ(element_to_text(at::scalar_tensor(-5, at::kLong)), "-5");
  EXPECT_EQ(element_to_text(at::scalar_tensor(true, at::kBool)), "true");
}

TEST(Constant, ComplexRoundTrips) {
  const at::Tensor constant =
      at::scalar_tensor(c10::complex<double>(0.1, -0.0), at::kComplexDouble);
  EXPECT_EQ(element_to_text(constant), "complex(0.1, -0.0)");
  EXPECT_TRUE(constants_equal(read("complex(0.1, -0.0)", at::kComplexDouble), constant));
}

TEST(Constant, BitsThatNoNumberStandsForAreBytes) {
  at::Tensor nan_with_payload = at::empty({}, at::kFloat);
  *static_cast<uint32_t*>(nan_with_payload.mutable_data_ptr()) = 0x7fc00123u;
  EXPECT_EQ(element_to_text(nan_with_payload), "bytes 2301c07f");
  EXPECT_TRUE(constants_equal(read("bytes 2301c07f", at::kFloat), nan_with_payload));
  at::Tensor small_float = at::scalar_tensor(1.5).to(at::kFloat8_e4m3fn);
  EXPECT_THAT(element_to_text(small_float), HasSubstr("bytes "));
  EXPECT_TRUE(constants_equal(read(element_to_text(small_float), at::kFloat8_e4m3fn), small_float));
}

TEST(Constant, EqualityIsDtypeFlagAndBits) {
  const at::Tensor one = at::scalar_tensor(1.0, at::kDouble);
  EXPECT_TRUE(constants_equal(one, at::scalar_tensor(1.0, at::kDouble)));
  EXPECT_EQ(constant_hash(one), constant_hash(at::scalar_tensor(1.0, at::kDouble)));
  EXPECT_FALSE(constants_equal(one, at::scalar_tensor(1.0, at::kFloat)));
  EXPECT_FALSE(constants_equal(one, at::scalar_tensor(1.5, at::kDouble)));
  EXPECT_FALSE(constants_equal(at::scalar_tensor(0.0), at::scalar_tensor(-0.0)));
  at::Tensor wrapped = at::scalar_tensor(1.0, at::kDouble);
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  EXPECT_FALSE(constants_equal(one, wrapped));
  const at::Tensor vector = at::ones({2});
  EXPECT_TRUE(constants_equal(vector, vector));
  EXPECT_FALSE(constants_equal(vector, vector.clone()));
}

TEST(Constant, OnlyPlainScalarsOnTheCpuAreConstants) {
  EXPECT_TRUE(is_constant(at::scalar_tensor(1.0)));
  EXPECT_FALSE(is_constant(at::Tensor()));
  EXPECT_FALSE(is_constant(at::ones({1})));
  EXPECT_FALSE(is_constant(at::empty({}, at::device(at::kMeta))));
  EXPECT_FALSE(is_constant(at::scalar_tensor(c10::complex<float>(1, 2), at::kComplexFloat).conj()));
  EXPECT_THAT([] { element_to_text(at::ones({1})); },
              ThrowsMessage<c10::Error>(HasSubstr("zero-dimensional CPU")));
}

TEST(Constant, MalformedElementsAreErrors) {
  EXPECT_THAT([] { read("300", at::kByte); },
              ThrowsMessage<c10::Error>(HasSubstr("in the dtype's range")));
  EXPECT_THAT([] { read("1.5", at::kLong); }, ThrowsMessage<c10::Error>(HasSubstr("an integer")));
  EXPECT_THAT([] { read("maybe", at::kBool); },
              ThrowsMessage<c10::Error>(HasSubstr("`true` or `false`")));
  EXPECT_THAT([] { read("bytes 00", at::kFloat); },
              ThrowsMessage<c10::Error>(HasSubstr("8 hexadecimal digits")));
  EXPECT_THAT([] { read("bytes 0000zz00", at::kFloat); },
              ThrowsMessage<c10::Error>(HasSubstr("hexadecimal")));
  EXPECT_THAT([] { read("1.0", at::kFloat8_e5m2); },
              ThrowsMessage<c10::Error>(HasSubstr("`bytes`")));
}

}  // namespace
}  // namespace foregrad
