#include "ops/memory_variant.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

c10::OperatorHandle find(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

/// Calls the memory variant: gives the memory's elements as the in-place operator leaves them.
at::Tensor call(const c10::OperatorHandle& in_place, torch::jit::Stack arguments) {
  memory_variant(in_place)->callBoxed(&arguments);
  return arguments.at(0).toTensor();
}

TEST(MemoryVariant, IsThereForOperatorsThatWriteTheirFirstArgument) {
  const auto variant = memory_variant(find("aten::add_", "Tensor"));
  ASSERT_TRUE(variant);
  EXPECT_EQ(variant->operator_name().name, "foregrad_memory::add_");
  EXPECT_EQ(variant->schema().arguments().size(), 4U);
  EXPECT_FALSE(memory_variant(find("aten::add", "Tensor")));
  EXPECT_FALSE(memory_variant(find("aten::add", "out")));
  EXPECT_FALSE(memory_variant(find("aten::_foreach_add_", "Scalar")));
  EXPECT_FALSE(memory_variant(find("aten::transpose_", "")));
}

TEST(MemoryVariant, WritesACopyOfTheMemory) {
  const at::Tensor memory = at::arange(6, at::kFloat);
  const at::Tensor before = memory.clone();
  const at::Tensor part = memory.as_strided({2, 2}, {1, 1}, 1);  // elements share memory
  const at::Tensor after = call(find("aten::fill_", "Scalar"), {memory, part, at::Scalar(9)});
  EXPECT_TRUE(at::equal(memory, before));
  part.fill_(9);
  EXPECT_TRUE(at::equal(after, memory));
}

TEST(MemoryVariant, MovesArgumentsThatLieInTheMemory) {
  const at::Tensor memory = at::arange(8, at::kFloat);
  // With gaps: where there are none, the kernel sees that they overlap.
  const at::Tensor low = memory.as_strided({2, 2}, {3, 1}, 0);
  const at::Tensor high = memory.as_strided({2, 2}, {3, 1}, 1);
  const at::Tensor after = call(find("aten::copy_", ""), {memory, low, high, false});
  low.copy_(high);
  EXPECT_TRUE(at::equal(after, memory));
}

TEST(MemoryVariant, KeepsOneTensorOne) {
  const at::Tensor memory = at::arange(3, at::kFloat);
  EXPECT_THROW(
      call(find("aten::index_put_", ""),
           {memory, memory, c10::List<std::optional<at::Tensor>>({at::arange(3)}), memory, false}),
      c10::Error);
}

TEST(MemoryVariant, DrawsInTheOrderOfTheMemory) {
  const at::Tensor memory = at::zeros({400});
  const at::Tensor gaps = memory.as_strided({10, 20}, {40, 1});
  at::manual_seed(1);
  const at::Tensor after = call(find("aten::normal_", ""), {memory, gaps, 0.0, 1.0, c10::IValue()});
  at::manual_seed(1);
  gaps.normal_();
  EXPECT_TRUE(at::equal(after, memory));
}

TEST(MemoryVariant, KeepsLazyBitsAndOtherDtypes) {
  const at::Tensor memory = at::ones({4}, at::kComplexFloat);
  const at::Tensor conj = memory.slice(0, 1).conj();
  const at::Tensor value = at::full({3}, c10::complex<float>(1, 2));
  const at::Tensor after = call(find("aten::copy_", ""), {memory, conj, value, false});
  const at::Tensor real = at::view_as_real(memory);
  const at::Tensor filled = call(find("aten::fill_", "Scalar"), {memory, real, at::Scalar(3)});
  conj.copy_(value);
  EXPECT_TRUE(at::equal(after, memory)) << at::view_as_real(after) << at::view_as_real(memory);
  real.fill_(3);
  EXPECT_TRUE(at::equal(filled, memory));
}

TEST(MemoryVariant, KnowsTypesOfMetaTensors) {
  const at::Tensor memory = at::empty({6}, at::kMeta);
  const at::Tensor after = call(find("aten::fill_", "Scalar"),
                                {memory, memory.as_strided({2, 2}, {1, 1}), at::Scalar(9)});
  EXPECT_TRUE(after.is_meta());
  EXPECT_EQ(after.sizes(), memory.sizes());
  EXPECT_FALSE(after.is_alias_of(memory));
}

TEST(MemoryVariant, LeavesOtherPartsOfTheStorageAlone) {
  const at::Tensor storage = at::arange(8, at::kFloat);
  const at::Tensor memory = storage.slice(0, 0, 3);
  const at::Tensor other = storage.slice(0, 4, 7);
  const at::Tensor after = call(find("aten::copy_", ""), {memory, memory, other, false});
  EXPECT_TRUE(at::equal(after, other));
}

TEST(MemoryVariant, RefusesATensorThatReachesOutOfTheMemory) {
  const at::Tensor storage = at::zeros({8});
  const at::Tensor memory = storage.slice(0, 2, 4);
  EXPECT_THROW(call(find("aten::fill_", "Scalar"), {memory, storage, at::Scalar(9)}), c10::Error);
}

}  // namespace
}  // namespace foregrad
