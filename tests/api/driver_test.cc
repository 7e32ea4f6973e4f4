#include "api/driver.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace foregrad::detail {
namespace {

class Doubled final : public BoundFunction {
 public:
  explicit Doubled(int& runs) : runs_(runs) {}
  TracedResult trace(const std::vector<at::Tensor>& tensors) override {
    ++runs_;
    return {.tensors = {tensors[0] * 2}, .prototype = nullptr};
  }

 private:
  int& runs_;
};

TEST(Driver, RecordsOnCalls1And2And4And8) {
  Driver driver({});
  int runs = 0;
  Doubled function(runs);
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
  Doubled function(runs);
  const auto x = at::ones({2});
  Leaves leaves;
  leaves(x);
  EXPECT_TRUE(driver.warm_up(leaves, function));
  EXPECT_EQ(driver.report().specialisations.at(0).calls, 0U);
  EXPECT_TRUE(driver.call(leaves, function).is_compiled);
  EXPECT_EQ(runs, 1);
}

TEST(Driver, WarmUpSaysWhatCannotBeCompiled) {
  class Refused final : public BoundFunction {
   public:
    TracedResult trace(const std::vector<at::Tensor>& tensors) override {
      return {.tensors = {tensors[0].nonzero()}, .prototype = nullptr};
    }
  } function;
  const auto x = at::ones({2});
  Leaves leaves;
  leaves(x);
  EXPECT_FALSE(Driver({}).warm_up(leaves, function));
  EXPECT_THROW(Driver({.policy = Policy::Refuse}).warm_up(leaves, function), c10::Error);
}

}  // namespace
}  // namespace foregrad::detail
