#include "foregrad/operators.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include "ops/schema.h"

namespace foregrad {
namespace {

TORCH_LIBRARY(test_operators, library) {
  library.def("count(Tensor x) -> Tensor");
  library.def("count.by(Tensor x, int by) -> Tensor");
}

TEST(Operators, DeclaresAnEffect) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("test_operators::count", "");
  const auto other = c10::Dispatcher::singleton().findSchemaOrThrow("test_operators::count", "by");
  EXPECT_TRUE(is_pure(op));
  declare_effect("test_operators::count");
  EXPECT_TRUE(has_effects(op));
  EXPECT_FALSE(is_pure(op));
  EXPECT_TRUE(has_declared_effect(op));
  EXPECT_FALSE(has_effects(other));
  declare_effect("test_operators::count.by");
  EXPECT_TRUE(has_declared_effect(other));
}

TEST(Operators, NamesWhatIsNotThere) {
  for (const char* name : {"test_operators::sum", "count", "test_operators::count.to", ""}) {
    try {
      declare_effect(name);
      ADD_FAILURE() << name;
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what_without_backtrace(),
                  ::testing::HasSubstr(std::string("got `") + name + "`"));
    }
  }
}

}  // namespace
}  // namespace foregrad
