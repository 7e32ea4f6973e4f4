#include "cli/fuzz/inputs_drawer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/fuzz/interpreter.h"

namespace foregrad::cli::fuzz {
namespace {

bool has_shared(const Tensors& tensors, bool (*is_shared)(const at::Tensor&, const at::Tensor&)) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (is_shared(tensors[i], tensors[j])) return true;
    }
  }
  return false;
}

bool is_one(const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); }
bool is_overlapping(const at::Tensor& a, const at::Tensor& b) {
  return !a.is_same(b) && a.is_alias_of(b);
}

TEST(FuzzInputsDrawer, DrawsAllKindsOfAliasing) {
  int twice = 0;
  int overlapping = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const Tensors arguments = prepare(draw_inputs(random), 0).arguments;
    twice += has_shared(arguments, is_one) ? 1 : 0;
    overlapping += has_shared(arguments, is_overlapping) ? 1 : 0;
  }
  EXPECT_GT(twice, 30);
  EXPECT_GT(overlapping, 30);
}

TEST(FuzzInputsDrawer, OtherInputsHaveEqualTypesAndOtherAliasing) {
  int changed = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const Tensors arguments = prepare(draw_inputs(random), 0).arguments;
    const Tensors others = prepare(draw_other_inputs(random, arguments), 0).arguments;
    ASSERT_EQ(others.size(), arguments.size());
    for (size_t i = 0; i < others.size(); ++i) {
      EXPECT_EQ(others[i].sizes(), arguments[i].sizes());
      EXPECT_EQ(others[i].scalar_type(), arguments[i].scalar_type());
    }
    changed += has_shared(arguments, is_overlapping) != has_shared(others, is_overlapping) ? 1 : 0;
  }
  EXPECT_GT(changed, 50);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
