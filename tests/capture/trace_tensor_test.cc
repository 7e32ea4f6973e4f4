#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capture/trace_tensor.h"

namespace foregrad {
namespace {

TEST(TraceTensor, ReportsTheTypeItStandsForOnTheCpu) {
  const auto real = at::arange(12).view({3, 4}).slice(1, 1, 3);
  const auto traced = make_trace_tensor(make_meta(type_of(real)), ValueId{5});
  EXPECT_EQ(type_of(traced), type_of(real));
  ASSERT_NE(as_trace_tensor(traced), nullptr);
  EXPECT_EQ(as_trace_tensor(traced)->value(), ValueId{5});
  EXPECT_EQ(as_trace_tensor(real), nullptr);
  EXPECT_EQ(as_trace_tensor(at::Tensor()), nullptr);
}

TEST(TraceTensor, UsedOutsideATraceIsAnErrorNotAValue) {
  const auto traced = make_trace_tensor(make_meta(type_of(at::ones({2}))), ValueId{0});
  EXPECT_THROW(traced + 1, c10::Error);
}

}  // namespace
}  // namespace foregrad
