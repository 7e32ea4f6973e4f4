// In-place writes into arguments that autograd follows.
#include <gmock/gmock.h>

#include "behaviours/graph_text.h"
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Report::Specialisation only(const Report& report) {
  EXPECT_EQ(report.specialisations.size(), 1u);
  return report.specialisations.empty() ? Report::Specialisation() : report.specialisations[0];
}

// An input with a history is written, then used: the gradient is that of the value before.
TEST(Behaviours, B019_AWrittenInputIsUsedAfterwards) {
  const Report report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].mul_(2);
        return {in[0] * in[1]};
      },
      start_of({Kind::Tracked, Kind::Leaf}, {3}));
  const auto roles = output_roles(only(report).joint_graph);
  ASSERT_GE(roles.size(), 2u);
  EXPECT_EQ(roles[0], "mutated(0)");  // updated inputs first, then results
  EXPECT_EQ(roles[1], "output(0)");
  EXPECT_THAT(only(report).forward_graph, Not(HasSubstr("aten::copy_")));
}

// A written input that is the result too is the caller's very tensor.
TEST(Behaviours, B020_AWrittenInputIsTheResult) {
  for (const Kind kind : {Kind::Plain, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].add_(1);
          return {in[0]};
        },
        start_of(kind, {3}));
  }
}

// Two of three inputs are written.
TEST(Behaviours, B021_TwoOfThreeInputsAreWritten) {
  for (const Kind kind : {Kind::Plain, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].mul_(2);
          in[2].mul_(in[1]);
          return {in[0] + in[1] + in[2]};
        },
        start_of({kind, Kind::Plain, kind}, {2, 3}));
  }
}

// A slice with a step is written and nothing is returned: the base has the change.
TEST(Behaviours, B022_ASliceWithAStepIsWritten) {
  for (const Kind kind : {Kind::Plain, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].add_(1);
          return {};
        },
        [kind]() -> Start {
          Start start;
          auto base = make(start, kind, {6});
          start.arguments = {base.slice(0, 0, 6, 2)};
          start.kept.push_back(base);
          return start;
        });
  }
}

// A column of a matrix is written, in both grad modes.
TEST(Behaviours, B023_AColumnIsWrittenInBothGradModes) {
  for (const bool grad_mode : {true, false}) {
    SCOPED_TRACE(grad_mode);
    for (const Kind kind : {Kind::Plain, Kind::Tracked}) {
      SCOPED_TRACE(name_of(kind));
      const MakeStart make_column = [kind]() -> Start {
        Start start;
        auto base = make(start, kind, {3, 4});
        start.arguments = {base.slice(1, 1, 3)};
        start.kept.push_back(base);
        return start;
      };
      expect_as_eager(
          [](const Tensors& in) -> Tensors {
            in[0].mul_(3);
            return {in[0] * 2};
          },
          {{.make = make_column, .grad_mode = grad_mode}});
    }
  }
}

// A plain input gains a history from what is written into it.
TEST(Behaviours, B024_APlainInputGainsAHistory) {
  const Report report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].mul_(in[1]);
        return {in[0] + 1};
      },
      start_of({Kind::Plain, Kind::Leaf}, {3}));
  EXPECT_THAT(only(report).forward_graph, Not(HasSubstr("aten::copy_")));
  EXPECT_THAT(only(report).backward_graph, HasSubstr("tangent(mutated(0))"));
}

// A buffer that is written while others are differentiated is updated by forward, not by backward.
TEST(Behaviours, B025_ABufferIsUpdatedInForward) {
  const Report report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[1].add_(1);
        return {in[0] * in[1]};
      },
      start_of({Kind::Leaf, Kind::Plain}, {3}));
  EXPECT_EQ(lines_with(only(report).forward_graph, "= mutated(1)").size(), 1u);
  EXPECT_THAT(only(report).backward_graph, Not(HasSubstr("mutated(1)")));
}

// The same beside a matrix product of another shape: one write-back.
TEST(Behaviours, B026_ABufferIsUpdatedOnceBesideAMatrixProduct) {
  const Report report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[2].mul_(2);
        in[2].add_(1);
        return {in[0].mm(in[1]).sum() + in[2].sum()};
      },
      []() -> Start {
        return {{leaf({2, 3}), leaf({3, 4}), plain({5})}};
      });
  EXPECT_EQ(lines_with(only(report).forward_graph, "= mutated(2)").size(), 1u);
  EXPECT_THAT(only(report).backward_graph, Not(HasSubstr("mutated(2)")));
}

// Batch norm in training updates three buffers in forward; backward sees nothing of them.
TEST(Behaviours, B027_BatchNormInTrainingUpdatesThreeBuffers) {
  const Report report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[5].add_(1);
        return {at::batch_norm(in[0], in[1], in[2], in[3], in[4], /*training=*/true, 0.1, 1e-5,
                               /*cudnn_enabled=*/false)};
      },
      []() -> Start {
        return {{leaf({4, 3, 2, 2}), leaf({3}), leaf({3}), plain({3}), plain({3}),
                 at::zeros({}, at::kLong)}};
      });
  const auto& compiled = only(report);
  for (const char* buffer : {"= mutated(3)", "= mutated(4)", "= mutated(5)"})
    EXPECT_EQ(lines_with(compiled.forward_graph, buffer).size(), 1u) << buffer;
  EXPECT_THAT(compiled.forward_graph, HasSubstr("batch_norm"));
  EXPECT_THAT(operators(compiled.backward_graph), ElementsAre("native_batch_norm_backward"));
  for (const char* updated : {"mutated(3)", "mutated(4)", "mutated(5)"})
    EXPECT_THAT(compiled.backward_graph, Not(HasSubstr(updated)));
}

// A leaf that requires grad may not be written; the error is eager's.
TEST(Behaviours, B028_ALeafThatRequiresGradIsWritten) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].mul_(2);
        return {in[0] * in[1]};
      },
      start_of({Kind::Leaf, Kind::Leaf}, {3}));
}

}  // namespace
}  // namespace foregrad::testing
