// In-place writes that autograd does not follow: through `detach()`, or without grad.
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

// A write through `detach()` changes the data of leaves and of others and is no part of history.
TEST(Behaviours, B029_AWriteThroughDetach) {
  for (const Kind kind : {Kind::Plain, Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].detach().mul_(3);
          return {in[0] * in[1]};
        },
        start_of({kind, Kind::Leaf}, {3}));
  }
}

// A write without grad through a view: the data changes and the version advances.
TEST(Behaviours, B030_ANoGradWriteThroughAView) {
  for (const Kind kind : {Kind::Plain, Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          {
            const at::NoGradGuard no_grad;
            in[0].view({-1}).mul_(2);
          }
          return {in[0] * in[0]};
        },
        start_of(kind, {2, 3}));
  }
}

// A write without grad into an input that requires grad.
TEST(Behaviours, B031_NoGradWriteOnInputThatRequiresGrad) {
  for (const Kind kind : {Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          {
            const at::NoGradGuard no_grad;
            in[0].mul_(2);
          }
          return {in[0] * in[1]};
        },
        start_of({kind, Kind::Leaf}, {3}));
  }
}

// Detached, tracked and no-grad writes in one function: only the tracked one is differentiated.
TEST(Behaviours, B032_DetachedTrackedAndNoGradWrites) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].detach().mul_(2);
        in[1].mul_(in[3]);
        {
          const at::NoGradGuard no_grad;
          in[2].add_(1);
        }
        return {in[0] * in[1] + in[2]};
      },
      start_of({Kind::Leaf, Kind::Tracked, Kind::Leaf, Kind::Leaf}, {3}));
}

// The same writes one after the other into one input.
TEST(Behaviours, B032_AllThreeWritesIntoOneInput) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].detach().mul_(2);
        in[0].mul_(3);
        {
          const at::NoGradGuard no_grad;
          in[0].add_(1);
        }
        return {in[0] * 2};
      },
      start_of(Kind::Tracked, {3}));
}

}  // namespace
}  // namespace foregrad::testing
