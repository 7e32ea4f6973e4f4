// Programs on which compilers of tensor programs have been wrong: in-place writes, views and
// aliases. The numbers hold for eager and compiled.
#include "support/as_eager.h"
#include "support/values.h"

namespace foregrad::testing {
namespace {

TEST(PublicFaults, F01_AWriteToAViewReachesTheBasesHistory) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].add_(1);
        return {};
      },
      []() -> Start {
        auto leaf = at::ones({4}).requires_grad_();
        auto base = leaf.add(0);
        return {.arguments = {base.slice(0, 0, 4, 2)}, .kept = {leaf, base}};
      },
      [](const Called& called) {
        expect_values(called.kept[1], {2, 1, 2, 1});
        called.kept[1].sum().backward();
        expect_values(called.kept[0].grad(), {1, 1, 1, 1});
      });
}

TEST(PublicFaults, F10_ArgumentsThatOverlapOnlyAtTheSecondCall) {
  const MakeStart apart = []() -> Start { return {{at::ones({4}), at::ones({4})}}; };
  const MakeStart overlapping = []() -> Start {
    auto base = at::ones({8});
    return {.arguments = {base.slice(0, 0, 4), base.slice(0, 2, 6)}, .kept = {base}};
  };
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].mul_(2);
        return {in[0] + in[1]};
      },
      {{.make = apart,
        .caller =
            [](const Called& called) {
              expect_values(called.results[0], {3, 3, 3, 3});
            }},
       {.make = overlapping, .caller = [](const Called& called) {
          expect_values(called.results[0], {4, 4, 3, 3});
          expect_values(called.kept[0], {2, 2, 2, 2, 1, 1, 1, 1});
        }}});
}

TEST(PublicFaults, F14_AWriteThroughAsStridedOutsideOfTheView) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto y = in[0].slice(0, 2);
        y.as_strided({3}, {1}, 1).fill_(7);
        return {y * 1};
      },
      []() -> Start { return {{at::arange(6, at::kFloat)}}; },
      [](const Called& called) {
        expect_values(called.arguments[0], {0, 7, 7, 7, 4, 5});
        expect_values(called.results[0], {7, 7, 4, 5});
      });
}

TEST(PublicFaults, F15_AsStridedCopySeesTheStridesOfTheArgument) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].add_(1);
        return {at::as_strided_copy(in[0], {3}, {2})};
      },
      []() -> Start {
        auto base = at::arange(10, at::kFloat);
        return {.arguments = {base.slice(0, 0, 10, 2)}, .kept = {base}};
      },
      [](const Called& called) {
        expect_values(called.results[0], {1, 3, 5});
      });
}

TEST(PublicFaults, F18_AWriteToAnUnfoldedTensorWithGaps) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto v = in[0].unfold(1, 1, 5);
        v.add_(v);
        return {};
      },
      []() -> Start {
        return {{at::arange(12, at::kFloat).view({2, 6}).clone()}};
      },
      [](const Called& called) {
        expect_values(called.arguments[0], {0, 1, 2, 3, 4, 10, 12, 7, 8, 9, 10, 22});
      });
}

TEST(PublicFaults, F19_AWriteToADiagonalIsNotDropped) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].diagonal().add_(1);
        return {in[0]};
      },
      []() -> Start {
        return {{at::zeros({2, 4})}};
      },
      [](const Called& called) {
        expect_values(called.arguments[0], {1, 0, 0, 0, 0, 1, 0, 0});
        expect_values(called.results[0], {1, 0, 0, 0, 0, 1, 0, 0});
      });
}

TEST(PublicFaults, F21_SetToALongerTensorAndBack) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto p = in[0];
        auto q = p.detach();
        p.set_(at::cat({p, p}));
        auto r = p * 2;
        p.set_(q);
        return {r};
      },
      []() -> Start {
        return {{floats({1, 2, 3})}};
      },
      [](const Called& called) {
        expect_values(called.results[0], {2, 4, 6, 2, 4, 6});
        expect_values(called.arguments[0], {1, 2, 3});
      });
}

TEST(PublicFaults, F23_AnAliasIsResized) {
  expect_refused(
      [](const Tensors& in) -> Tensors {
        auto b = in[0] + 1;
        auto a = b.view({-1});
        a.resize_({12});
        return {b + 1};
      },
      []() -> Start { return {{at::ones({1})}}; }, "resize a view tensor to a larger size",
      [](const Called& called) { expect_values(called.results[0], {3}); });
}

TEST(PublicFaults, F39_AShiftByOneInPlace) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].slice(0, 1).copy_(in[0].slice(0, 0, -1).clone());
        return {};
      },
      []() -> Start {
        return {{floats({1, 2, 3, 4, 5, 6})}};
      },
      [](const Called& called) {
        expect_values(called.arguments[0], {1, 1, 2, 3, 4, 5});
      });
}

TEST(PublicFaults, F40_AnInputIsZeroedAfterItWasScatteredInto) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto y = at::slice_scatter(in[0], in[1], 0, 1, 3);
        in[0].zero_();
        return {y};
      },
      []() -> Start {
        return {{floats({1, 2, 3, 4}), floats({-1, -2})}};
      },
      [](const Called& called) {
        expect_values(called.results[0], {1, -1, -2, 4});
        expect_values(called.arguments[0], {0, 0, 0, 0});
      });
}

TEST(PublicFaults, F41_ComplexAndRealViewsOfOneIntermediate) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto z = at::view_as_complex(in[0] + 1);
        return {at::view_as_real(z) + 1, at::view_as_real(z + 1)};
      },
      []() -> Start {
        return {{at::zeros({2, 2})}};
      },
      [](const Called& called) {
        expect_values(called.results[0], {2, 2, 2, 2});
        expect_values(called.results[1], {2, 1, 2, 1});
      });
}

TEST(PublicFaults, F43_AWriteThroughAViewOfTheSameDtype) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].view(at::kFloat).copy_(in[1]);
        return {};
      },
      []() -> Start {
        return {{at::zeros({3}), floats({1, 2, 3})}};
      },
      [](const Called& called) {
        expect_values(called.arguments[0], {1, 2, 3});
      });
}

TEST(PublicFaults, F46_OneTensorAsTwoArguments) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0] * in[1] + in[0]}; },
                  []() -> Start {
                    auto x = floats({2, 3}).requires_grad_();
                    return {{x, x}};
                  },
                  [](const Called& called) {
                    called.results[0].sum().backward();
                    expect_values(called.arguments[0].grad(), {5, 7});
                  });
}

TEST(PublicFaults, F68_AWriteToOneOfSeveralPartsIsAnError) {
  const Program program = [](const Tensors& in) -> Tensors {
    auto parts = (in[0] * 1).split(2);
    parts[0].mul_(3);
    return {parts[0]};
  };
  EXPECT_THROW(program({leaf({4})}), c10::Error);
  expect_as_eager(program, start_of(Kind::Leaf, {4}));
}

}  // namespace
}  // namespace foregrad::testing
