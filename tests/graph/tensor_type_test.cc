#include "graph/tensor_type.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

TEST(TensorType, ReadsWhatACallerSees) {
  const at::Tensor base = at::zeros({4, 6}, at::kDouble);
  const TensorType type = type_of(base.slice(0, 1, 3).t());
  EXPECT_EQ(type.dtype, at::kDouble);
  EXPECT_EQ(type.sizes, c10::DimVector({6, 2}));
  EXPECT_EQ(type.strides, c10::DimVector({1, 6}));
  EXPECT_EQ(type.storage_offset, 6);
  EXPECT_TRUE(type.device.is_cpu());
  EXPECT_FALSE(type.is_conj);
  EXPECT_FALSE(type.is_neg);
}

TEST(TensorType, ReadsLazyBits) {
  const at::Tensor complex = at::zeros({2}, at::kComplexFloat);
  EXPECT_TRUE(type_of(complex.conj()).is_conj);
  EXPECT_TRUE(type_of(at::imag(complex.conj())).is_neg);
}

TEST(TensorType, CountsElementsAndBytes) {
  const TensorType type = type_of(at::zeros({2, 3}, at::kDouble));
  EXPECT_EQ(type.numel(), 6);
  EXPECT_EQ(type.size_bytes(), 48u);
  EXPECT_EQ(type_of(at::zeros({}, at::kHalf)).numel(), 1);
  EXPECT_EQ(type_of(at::zeros({0, 3})).size_bytes(), 0u);
}

TEST(TensorType, WritesOnlyWhatIsNotTheDefault) {
  EXPECT_EQ(to_text(type_of(at::zeros({2, 3}))), "f32[2,3]{3,1}");
  EXPECT_EQ(to_text(type_of(at::zeros({}, at::kLong))), "i64[]{}");
  EXPECT_EQ(to_text(type_of(at::zeros({4}).slice(0, 2))), "f32[2]{1}+2");
  EXPECT_EQ(to_text(type_of(at::zeros({2}, at::kComplexFloat).conj())), "c64[2]{1} conj");
  EXPECT_EQ(to_text(type_of(at::imag(at::zeros({2}, at::kComplexFloat).conj()))),
            "f32[2]{2}+1 neg");
  EXPECT_EQ(to_text(type_of(at::empty({2}, at::device(at::kMeta)))), "f32[2]{1}@meta");
}

TEST(TensorType, ComparesEveryMember) {
  const TensorType type{.sizes = {2}, .strides = {1}};
  const auto differs = [&](auto change) {
    TensorType other = type;
    change(other);
    return !(other == type);
  };
  EXPECT_TRUE(differs([](TensorType& t) { t.dtype = at::kDouble; }));
  EXPECT_TRUE(differs([](TensorType& t) { t.sizes = {3}; }));
  EXPECT_TRUE(differs([](TensorType& t) { t.strides = {2}; }));
  EXPECT_TRUE(differs([](TensorType& t) { t.storage_offset = 1; }));
  EXPECT_TRUE(differs([](TensorType& t) { t.device = c10::kMeta; }));
  EXPECT_TRUE(differs([](TensorType& t) { t.is_conj = true; }));
  EXPECT_TRUE(differs([](TensorType& t) { t.is_neg = true; }));
  EXPECT_FALSE(differs([](TensorType&) {}));
}

}  // namespace
}  // namespace foregrad
