#include "api/driver.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

namespace foregrad::detail {
namespace {

using Tensors = std::vector<at::Tensor>;

class Traced final : public BoundFunction {
 public:
  explicit Traced(std::function<Tensors(const Tensors&)> fn) : fn_(std::move(fn)) {}
  TracedResult trace(const Tensors& tensors) override {
    return {.tensors = fn_(tensors), .prototype = nullptr};
  }

 private:
  std::function<Tensors(const Tensors&)> fn_;
};

/// Doubles a tensor and counts how often it runs.
Traced doubled(int& runs) {
  return Traced([&runs](const Tensors& in) -> Tensors {
    ++runs;
    return {in[0] * 2};
  });
}

TEST(Driver, RecordsOnCalls1And2And4And8) {
  Driver driver({});
  int runs = 0;
  Traced function = doubled(runs);
  const auto x = at::ones({2});
  Leaves leaves;
  leaves(x);
  std::vector<int> recorded_at;
  for (int call = 1; call <= 9; ++call) {
    const int before = runs;
    EXPECT_TRUE(driver.call(leaves, function).is_compiled);
    if (runs != before) recorded_at.push_back(call);
  }
  EXPECT_EQ(recorded_at, (std::vector<int>{1, 2, 4, 8}));
}

TEST(Driver, WarmsUpWithoutACall) {
  Driver driver({});
  int runs = 0;
  Traced function = doubled(runs);
  const auto x = at::ones({2});
  Leaves leaves;
  leaves(x);
  EXPECT_TRUE(driver.warm_up(leaves, function));
  EXPECT_EQ(driver.report().specialisations.at(0).calls, 0U);
  EXPECT_TRUE(driver.call(leaves, function).is_compiled);
  EXPECT_EQ(runs, 1);
}

TEST(Driver, WarmUpSaysWhatCannotBeCompiled) {
  Traced function([](const Tensors& in) -> Tensors { return {in[0].nonzero()}; });
  const auto x = at::ones({2});
  Leaves leaves;
  leaves(x);
  EXPECT_FALSE(Driver({}).warm_up(leaves, function));
  EXPECT_THROW(Driver({.policy = Policy::Refuse}).warm_up(leaves, function), c10::Error);
}

}  // namespace
}  // namespace foregrad::detail
