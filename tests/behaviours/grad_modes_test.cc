// Whether a call is compiled for training or for inference.
#include <gmock/gmock.h>

#include "behaviours/graph_text.h"
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void expect_inference_graphs(const Report& report) {
  for (const auto& specialisation : report.specialisations) {
    EXPECT_THAT(operators(specialisation.backward_graph), IsEmpty());
    EXPECT_THAT(specialisation.forward_graph, Not(HasSubstr("saved(")));
    EXPECT_EQ(specialisation.saved_bytes, 0u);
  }
}

// Two inputs that do and do not require grad, over three results that use one, both or the other.
TEST(Behaviours, B012_EachOfTwoInputsMayRequireGrad) {
  for (const Kind first : {Kind::Plain, Kind::Leaf}) {
    for (const Kind second : {Kind::Plain, Kind::Leaf}) {
      SCOPED_TRACE(std::string(name_of(first)) + ", " + name_of(second));
      const Report report = expect_as_eager(
          [](const Tensors& in) -> Tensors {
            return {in[0].sin(), in[0] * in[1], in[1] * 2};
          },
          start_of({first, second}, {3}));
      if (first == Kind::Plain && second == Kind::Plain) expect_inference_graphs(report);
    }
  }
}

// Everything runs without grad: the graph is one for inference, whatever the input says.
TEST(Behaviours, B013_AllUnderNoGradInside) {
  for (const Kind kind : {Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_inference_graphs(expect_as_eager(
        [](const Tensors& in) -> Tensors {
          const at::NoGradGuard no_grad;
          return {in[0] * in[0], in[0].exp()};
        },
        start_of(kind, {3})));
  }
}

// Grad enabled inside of a call without grad: that result has a history and is differentiated
// later.
TEST(Behaviours, B014_GradEnabledInsideOfNoGrad) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto without = in[0] * 2;
        const at::AutoGradMode enable(true);
        return {without, in[0] * in[0]};
      },
      {{.make = start_of(Kind::Leaf, {3}), .grad_mode = false}});
}

// A view taken without grad: as eager gives it, regenerated from the caller's tensor.
TEST(Behaviours, B015_AViewTakenUnderNoGrad) {
  for (const Kind kind : {Kind::Plain, Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    for (const bool inside : {true, false}) {
      SCOPED_TRACE(inside);
      expect_inference_graphs(expect_as_eager(
          [inside](const Tensors& in) -> Tensors {
            const at::AutoGradMode mode(at::GradMode::is_enabled() && !inside);
            return {in[0].view({-1}), in[0] * 2};
          },
          {{.make = start_of(kind, {2, 3}), .grad_mode = inside}}));
    }
  }
}

// Batch norm in evaluation reads its running statistics and leaves nothing to write back.
TEST(Behaviours, B016_BatchNormInEvaluationWritesNothing) {
  const Report report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return {at::batch_norm(in[0], in[1], in[2], in[3], in[4], /*training=*/false, 0.1, 1e-5,
                               /*cudnn_enabled=*/false)};
      },
      []() -> Start {
        return {{plain({4, 3, 2, 2}), leaf({3}), leaf({3}), plain({3}), plain({3})}};
      });
  ASSERT_EQ(report.specialisations.size(), 1u);
  for (const auto& graph :
       {report.specialisations[0].forward_graph, report.specialisations[0].backward_graph}) {
    EXPECT_THAT(graph, Not(HasSubstr("copy_")));
    EXPECT_THAT(graph, Not(HasSubstr("mutated(")));
  }
}

}  // namespace
}  // namespace foregrad::testing
