#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "ops/shape_rules.h"

namespace foregrad {
namespace {

TEST(ShapeRules, AreFoundByOperatorAndOverload) {
  const auto find = [](const char* name, const char* overload) {
    return find_shape_rule(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
  };
  EXPECT_NE(find("aten::relu", ""), nullptr);
  EXPECT_EQ(find("aten::relu", "out"), nullptr);
  EXPECT_EQ(find("aten::mm", ""), nullptr);
  const auto x = at::ones({2, 3}, at::kMeta).t();
  const auto result = find("aten::relu", "")(std::vector<c10::IValue>{x});
  EXPECT_EQ((*result)[0].strides(), x.strides());
}

}  // namespace
}  // namespace foregrad
