#include "capture/record_again.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

TEST(RecordAgain, GivesTheSameProgramWithoutTheFunction) {
  const auto captured = at::ones({2});
  const auto x = at::ones({2}).requires_grad_();
  int calls = 0;
  RecordRequest request{.arguments = {x, x, at::Tensor()},
                        .run =
                            [&](const std::vector<at::Tensor>& in) {
                              ++calls;
                              return std::vector<at::Tensor>{(in[1] * captured).sin(), captured};
                            },
                        .on_capture = {}};
  const Recording first = record(request).recording;
  request.captured = {captured};
  const Recording again = record_again(first, request).recording;
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(first_difference(first, again), std::nullopt);
}

TEST(RecordAgain, DistinctTensorsAreDefinedAndComeOnce) {
  const auto a = at::ones({2}), b = at::ones({2});
  const auto distinct = distinct_tensors({a, at::Tensor(), b, a});
  ASSERT_EQ(distinct.size(), 2U);
  EXPECT_TRUE(distinct[0].is_same(a) && distinct[1].is_same(b));
}

}  // namespace
}  // namespace foregrad
