#include "capture/outside_state.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "graph/refusal.h"

namespace foregrad {
namespace {

TEST(OutsideState, ModesComeBack) {
  {
    ModeGuard guard;
    EXPECT_FALSE(guard.changed());
    c10::GradMode::set_enabled(false);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    EXPECT_TRUE(guard.changed());
    EXPECT_FALSE(at::autocast::is_autocast_cache_enabled());
  }
  EXPECT_TRUE(c10::GradMode::is_enabled());
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
}

TEST(OutsideState, InferenceModeBecomesNoGradMode) {
  {
    const OutsideInferenceMode nothing;
    EXPECT_FALSE(nothing.was_inside());
    EXPECT_TRUE(c10::GradMode::is_enabled());
  }
  const c10::InferenceMode mode;
  {
    const OutsideInferenceMode outside;
    EXPECT_TRUE(outside.was_inside());
    EXPECT_FALSE(c10::InferenceMode::is_enabled());
    EXPECT_FALSE(c10::GradMode::is_enabled());
    EXPECT_FALSE(at::ones({1}).is_inference());
  }
  EXPECT_TRUE(c10::InferenceMode::is_enabled());
}

TEST(OutsideState, AnomalyModeLooksForNoNan) {
  using torch::autograd::AnomalyMode;
  AnomalyMode::set_enabled(true);
  {
    const WithoutNanChecks without;
    EXPECT_TRUE(AnomalyMode::is_enabled());
    EXPECT_FALSE(AnomalyMode::should_check_nan());
  }
  EXPECT_TRUE(AnomalyMode::should_check_nan());
  AnomalyMode::set_enabled(false);
}

TEST(OutsideState, ADrawnOrSeededGeneratorIsPutBackAndRefused) {
  at::manual_seed(1);
  const GeneratorWatch watch;
  EXPECT_NO_THROW(watch.refuse_changes());
  const auto first = at::rand({1});
  EXPECT_THROW(watch.refuse_changes(), Refusal);
  EXPECT_TRUE(at::equal(at::rand({1}), first));
}

TEST(OutsideState, DataAndGradsArePutBack) {
  const auto w = at::ones({2}).requires_grad_();
  w.mutable_grad() = at::full({2}, 5.0);
  TensorWatch watch;
  watch.watch_grad(w);
  watch.watch_data(w);
  EXPECT_NO_THROW(watch.refuse_changes());
  w.mutable_grad().reset();
  EXPECT_THROW(watch.refuse_changes(), Refusal);
  EXPECT_TRUE(at::equal(w.grad(), at::full({2}, 5.0)));
  w.set_data(at::zeros({3}));
  EXPECT_THROW(watch.refuse_changes(), Refusal);
  EXPECT_EQ(w.sizes(), at::IntArrayRef({2}));
  // What another thread's backward leaves there stays.
  w.mutable_grad() = at::full({2}, 6.0);
  EXPECT_NO_THROW(watch.refuse_changes());
  EXPECT_TRUE(at::equal(w.grad(), at::full({2}, 6.0)));
}

}  // namespace
}  // namespace foregrad
