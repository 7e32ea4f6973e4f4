// Changes of an argument's sizes, strides and flags.
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

void expect_for_all_kinds(const Program& program) {
  for (const Kind kind : {Kind::Plain, Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(program, start_of(kind, {2, 3}));
  }
}

// The caller's tensor is transposed by the call.
TEST(Behaviours, B033_AnInputIsTransposed) {
  expect_for_all_kinds([](const Tensors& in) -> Tensors {
    in[0].transpose_(0, 1);
    return {in[0] * 2};
  });
}

// Transposed, then written.
TEST(Behaviours, B034_AnInputIsTransposedThenWritten) {
  expect_for_all_kinds([](const Tensors& in) -> Tensors {
    in[0].transpose_(0, 1);
    in[0].mul_(2);
    return {in[0] + 1};
  });
}

// Transposed, then one of its rows is written, then a view of it is returned.
TEST(Behaviours, B035_AnInputIsTransposedARowWrittenAViewReturned) {
  expect_for_all_kinds([](const Tensors& in) -> Tensors {
    in[0].t_();
    in[0][0].mul_(2);
    return {in[0].view(in[0].sizes())};
  });
}

// `requires_grad_` inside: gradients flow, and the caller's tensor has the flag afterwards.
TEST(Behaviours, B036_AnInputIsMadeToRequireGrad) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].requires_grad_(true);
        return {in[0] * in[1]};
      },
      start_of({Kind::Plain, Kind::Plain}, {3}));
}

}  // namespace
}  // namespace foregrad::testing
