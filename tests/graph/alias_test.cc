#include "graph/alias.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "graph/refusal.h"

namespace foregrad {
namespace {

/// A new value of the alias is found in its place, and nowhere else.
void expect_written_where_seen(const at::Tensor& source, const TensorType& type, int64_t offset) {
  const at::Tensor alias = alias_of(source, type, offset);
  EXPECT_EQ(alias.sizes(), at::IntArrayRef(type.sizes));
  EXPECT_EQ(alias.is_conj(), type.is_conj);
  EXPECT_EQ(alias.is_neg(), type.is_neg);
  EXPECT_TRUE(alias.is_alias_of(source));
  const at::Tensor value = at::arange(alias.numel()).reshape(alias.sizes()).to(alias.dtype());
  const at::Tensor before = source.clone();
  const at::Tensor scattered = alias_scatter(source, value, type, offset);
  EXPECT_TRUE(at::equal(source, before));
  alias.copy_(value);
  EXPECT_TRUE(at::equal(scattered, source)) << scattered << source;
  EXPECT_EQ(scattered.strides(), source.strides());
  EXPECT_EQ(scattered.is_conj(), source.is_conj());
}

TEST(Alias, SeesStridesOffsetsAndLazyBits) {
  expect_written_where_seen(at::zeros({4, 3}), {.sizes = {2, 2}, .strides = {3, 1}}, 1);
  const at::Tensor part = at::zeros({4, 3}).slice(0, 1, 3);
  expect_written_where_seen(part, {.sizes = {3, 2}, .strides = {1, 3}}, 0);
  expect_written_where_seen(at::zeros({4}), {.sizes = {4}, .strides = {1}, .is_neg = true}, 0);
  expect_written_where_seen(
      at::zeros({4}, at::kComplexFloat),
      {.dtype = at::kComplexFloat, .sizes = {3}, .strides = {1}, .is_conj = true}, 1);
}

TEST(Alias, SeesOtherDtypes) {
  const at::Tensor complex = at::zeros({2, 3}, at::kComplexFloat);
  expect_written_where_seen(complex, {.sizes = {2, 2}, .strides = {6, 1}}, 2);
  expect_written_where_seen(complex.conj(), {.sizes = {2, 2}, .strides = {6, 1}}, 2);
  expect_written_where_seen(at::zeros({3, 4}),
                            {.dtype = at::kComplexFloat, .sizes = {2}, .strides = {3}}, 1);
  expect_written_where_seen(at::zeros({3, 4}),
                            {.dtype = at::kInt, .sizes = {2, 2}, .strides = {4, 1}}, 3);
  expect_written_where_seen(at::zeros({24}, at::kByte),
                            {.dtype = at::kFloat, .sizes = {2, 2}, .strides = {2, 1}}, 1);
  expect_written_where_seen(at::zeros({3, 4}).t(),
                            {.dtype = at::kByte, .sizes = {5}, .strides = {4}}, 2);
}

TEST(Alias, RefusesWhatHasNoPlace) {
  const at::Tensor gaps = at::zeros({8}).slice(0, 0, 8, 2);
  EXPECT_THROW(alias_of(gaps, {.dtype = at::kDouble, .sizes = {1}, .strides = {1}}, 0), Refusal);
  const at::Tensor odd = at::zeros({3});
  const TensorType wide{.dtype = at::kDouble, .sizes = {1}, .strides = {1}};
  EXPECT_EQ(alias_of(odd, wide, 0).numel(), 1);
  EXPECT_THROW(alias_scatter(odd, at::zeros({1}, at::kDouble), wide, 0), Refusal);
}

TEST(Alias, CountsOffsetsInTheInnerDtype) {
  const auto at_offset = [](at::ScalarType dtype, int64_t offset) {
    return TensorType{.dtype = dtype, .sizes = {}, .strides = {}, .storage_offset = offset};
  };
  EXPECT_EQ(offset_between(at_offset(at::kFloat, 2), at_offset(at::kFloat, 5)), 3);
  EXPECT_EQ(offset_between(at_offset(at::kFloat, 2), at_offset(at::kComplexFloat, 3)), 2);
  EXPECT_THROW(offset_between(at_offset(at::kFloat, 1), at_offset(at::kComplexFloat, 1)), Refusal);
}

TEST(Alias, IsFollowedByAutograd) {
  const at::Tensor leaf = at::rand({2, 3}).requires_grad_();
  alias_of(leaf, {.sizes = {2}, .strides = {3}}, 1).sum().backward();
  EXPECT_TRUE(at::equal(leaf.grad(), at::tensor({0.F, 1.F, 0.F, 0.F, 1.F, 0.F}).view({2, 3})))
      << leaf.grad();
}

}  // namespace
}  // namespace foregrad
