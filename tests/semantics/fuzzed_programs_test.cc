// Programs that the fuzzer found to differ from eager once, one of each kind.
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

void expect_for(const Twin& twin, std::initializer_list<Kind> kinds,
                const std::vector<int64_t>& sizes) {
  for (const Kind kind : kinds) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(twin, start_of(kind, sizes));
  }
}

/// An argument that is a view of a tensor with a history.
MakeStart start_of_view(const std::vector<int64_t>& sizes,
                        const std::function<at::Tensor(const at::Tensor&)>& view) {
  return [=]() -> Start {
    Start start;
    const at::Tensor base = tracked(start, sizes);
    start.kept.push_back(base);
    start.arguments = {view(base)};
    return start;
  };
}

at::Tensor without_grad(const std::function<at::Tensor()>& make) {
  const at::NoGradGuard no_grad;
  return make();
}

// ---- values

TEST(FuzzedPrograms, AWriteThroughAnExpandOfTheSameSize) {
  expect_for(
      [](const Tensors& in) -> Tensors {
        in[0].expand({4, 3}).sin_();
        return {};
      },
      {Kind::Plain, Kind::Tracked}, {4, 3});
}

TEST(FuzzedPrograms, ARandomFillOfATensorWithGaps) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].normal_();
        return {at::dropout(in[0], 0.5, true)};
      },
      []() -> Start {
        const at::Tensor base = plain({8, 6});
        return {.arguments = {base.slice(1, 0, 4).t()}, .kept = {base}};
      });
}

TEST(FuzzedPrograms, WritesWhereElementsShareMemory) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].as_strided({3, 3}, {2, 1}).mul_(2);
        in[0].as_strided({3, 3}, {2, 1}).select(0, 1).mul_(3);
        in[0].as_strided({2, 3}, {4, 1}).copy_(in[0].as_strided({2, 3}, {4, 1}, 2));
        return {in[0] + 1};
      },
      start_of(Kind::Plain, {12}));
}

TEST(FuzzedPrograms, AWriteToARowOfAnExpandedArgument) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].select(0, 2).add_(4);
        return {in[0] * 2};
      },
      start_of_view({3}, [](const at::Tensor& base) {
        return base.detach().expand({3, 3});
      }));
}

TEST(FuzzedPrograms, AsStridedInPlaceReachesOutOfTheArgument) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].as_strided_({1, 1}, {1, 3}, 0).zero_();
        return {};
      },
      start_of_view({3}, [](const at::Tensor& base) { return base.detach().slice(0, 1, 2); }));
}

TEST(FuzzedPrograms, AResizedArgumentIsWrittenBesideAnother) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].resize_({1, 1}).add_(1);
        in[1].fill_(0);
        return {};
      },
      []() -> Start {
        const at::Tensor base = plain({5});
        return {.arguments = {base.as_strided({1, 3}, {3, 1}, 1), base.slice(0, 0, 1)},
                .kept = {base}};
      });
}

TEST(FuzzedPrograms, ATensorThatIsReshapedFromATransposeIsSplit) {
  expect_for(
      [](const Tensors& in) -> Tensors {
        in[0].transpose_(0, 1);
        return {in[0].reshape({12}).split(3, 0)[2]};
      },
      {Kind::Plain}, {4, 3});
}

TEST(FuzzedPrograms, ACopyThatMightHaveBeenAViewIsWritten) {
  const auto report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].to(at::kDouble).add_(1);
        return {in[0].sin()};
      },
      start_of(Kind::Tracked, {3}));
  EXPECT_EQ(report.specialisations.at(0).forward_graph.find("mutated("), std::string::npos);
}

// ---- strides and flags

TEST(FuzzedPrograms, TensorsWithGapsKeepTheirStrides) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor own = at::empty_strided({2, 3}, {7, 2}).fill_(1);
        own.mul_(in[0]).add_(1);
        const at::Tensor none = at::empty_strided({0, 3}, {9, 2}).add_(1);
        return {own, none};
      },
      start_of(Kind::Plain, {2, 3}));
}

TEST(FuzzedPrograms, AWriteThroughAConjugateViewLeavesNoLazyBit) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor own = in[0].to(at::kComplexFloat);
        own.conj().uniform_();
        return {own};
      },
      start_of(Kind::Plain, {3}));
}

TEST(FuzzedPrograms, ViewsOfWhatIsWrittenLater) {
  expect_for(
      [](const Tensors& in) -> Tensors {
        const at::Tensor own = in[0].clone();
        const at::Tensor view = own.expand({2, 2, 3});
        own.copy_(in[0]);
        return {view, own};
      },
      {Kind::Plain, Kind::Leaf, Kind::Tracked}, {2, 3});
}

// ---- gradients

TEST(FuzzedPrograms, AViewWhoseSizesChangedIsWritten) {
  const auto slice = [](const at::Tensor& base) { return base.slice(0, 1, 2); };
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0].squeeze_().cumsum_(0)}; },
                  start_of_view({3, 3}, slice));
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0].t_().mul_(3)}; },
                  start_of_view({3, 3}, slice));
}

TEST(FuzzedPrograms, TheBaseOfAResultChangesItsSizes) {
  expect_for(
      [](const Tensors& in) -> Tensors {
        const at::Tensor own = in[0] * 2;
        const at::Tensor row = own.select(0, 1);
        own.t_();
        return {row};
      },
      {Kind::Leaf, Kind::Tracked}, {3, 4});
}

TEST(FuzzedPrograms, AViewOutsideOfAnotherFollowsTheBase) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor outside = in[0].slice(0, 2, 4).as_strided({2}, {1}, 0);
        in[0].mul_(-1);
        return {outside.sum()};
      },
      start_of(Kind::Tracked, {4}));
}

TEST(FuzzedPrograms, ALeafChangesItsSizesWithoutGradMode) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor corner = without_grad([&] {
          return in[0].as_strided_({1, 1}, {3, 3}, 4);
        });
        return {corner * 2};
      },
      start_of(Kind::Leaf, {3, 3}));
}

TEST(FuzzedPrograms, ALeafIsUsedBeforeItIsGivenAnotherStorage) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor before = in[0] + in[0];
        without_grad([&] { return in[0].set_(before.detach().clone()); });
        return {before, in[0] * 3};
      },
      start_of(Kind::Leaf, {3}));
}

// Autograd cuts the written elements from the view's base by the sizes that the view has then.
TEST(FuzzedPrograms, AViewIsGivenAnotherStorageAndThenWritten) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor factor = in[0] * 2;
        without_grad([&] { return in[0].set_(in[1]); });
        return {in[0].mul_(factor)};
      },
      []() -> Start {
        const at::Tensor base = plain({3}).set_requires_grad(true) * 1;
        return {.arguments = {base.as_strided({}, {}, 1), plain({3})}, .kept = {base}};
      });
}

TEST(FuzzedPrograms, AViewBeyondAnArgumentAfterAWriteThatAutogradDoesNotSee) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor before_it = in[0].as_strided({1, 1}, {2, 3}, 0);
        without_grad([&] { return in[0].mul_(1); });
        return {before_it.clone()};
      },
      start_of_view({3}, [](const at::Tensor& base) { return base.as_strided({}, {}, 1); }));
}

TEST(FuzzedPrograms, AWriteThatAutogradDoesNotSeeToOneOfSeveralViews) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0].detach().sub_(in[0]).abs()}; },
                  start_of_view({2}, [](const at::Tensor& base) { return base.unbind()[1]; }));
}

TEST(FuzzedPrograms, ASavedTensorChangesItsSizesAndIsViewed) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor row = in[0].clone().unsqueeze_(0);
        return {at::maximum(row, row), row.unsqueeze(2)};
      },
      start_of(Kind::Leaf, {3}), [](const Called& called) { called.results[0].sum().backward(); });
}

TEST(FuzzedPrograms, AWrittenArgumentChangesItsSizesAndIsUsed) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].zero_();
        in[0].unsqueeze_(1);
        return {in[0].clone()};
      },
      start_of(Kind::Tracked, {3}));
}

TEST(FuzzedPrograms, AWrittenResultGivesItsStorageToAnother) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        at::Tensor sum = in[0].sum();
        const at::Tensor view = sum.as_strided({1, 1}, {2, 2}, 0);
        const at::Tensor result = sum.relu().zero_();
        sum.set_(result);
        return {view, result};
      },
      start_of(Kind::Plain, {3}));
}

TEST(FuzzedPrograms, ATensorIsWrittenFromTheEmptyOneWhoseStorageItWasGiven) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor other = in[0].neg();
        at::Tensor self = in[0];
        self.set_(other).index_put_({at::arange(0)}, other);
        return {};
      },
      start_of(Kind::Plain, {0}));
}

TEST(FuzzedPrograms, AConjugateViewIsWrittenBeforeBackward) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0].square()}; },
                  []() -> Start {
                    const at::Tensor base = at::ones({3}, at::kComplexFloat).requires_grad_() * 1;
                    return {.arguments = {base.conj()}, .kept = {base}};
                  },
                  [](const Called& called) {
                    without_grad([&] { return called.arguments[0].mul_(2); });
                    EXPECT_THROW(called.results[0].abs().sum().backward(), c10::Error);
                  });
}

TEST(FuzzedPrograms, ATensorIsMovedBehindAViewOfItThatIsWritten) {
  const auto move_to = [](int64_t offset) -> Program {
    return [=](const Tensors& in) -> Tensors {
      const at::Tensor view = in[0].slice(0, 2, 3);
      const at::Tensor moved = in[0].as_strided_({2, 3}, {3, 1}, offset);
      view.mul_(view);
      return {moved};
    };
  };
  expect_as_eager(move_to(3), start_of(Kind::Tracked, {5, 3}));
  expect_refused(move_to(9), start_of(Kind::Tracked, {5, 3}), "a view begins before");
}

TEST(FuzzedPrograms, AnArgumentIsFreedOfItsHistoryAfterUse) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor result = in[0].softmax(0);
        in[0].requires_grad_(false);
        return {result};
      },
      start_of(Kind::Leaf, {4}));
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor view = in[0].clamp_(0, 1).view({2, 2});
        in[0].sin_();
        in[0].detach_();
        return {view};
      },
      start_of(Kind::Tracked, {4}));
}

TEST(FuzzedPrograms, OneTangentOfEmptyResults) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor result = in[0].tanh();
        in[0].zero_();
        return {result};
      },
      start_of_view({0, 2}, [](const at::Tensor& base) { return base.select(1, 1); }),
      [](const Called& called) { called.results[0].sum().backward(); });
}

// ---- errors

TEST(FuzzedPrograms, ALaterWriteToWhatBackwardReads) {
  const auto write_and_differentiate = [](const Called& called) {
    without_grad([&] { return called.arguments[0].mul_(2); });
    EXPECT_THROW(called.results[0].sum().backward(), c10::Error);
  };
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0].relu_()}; },
                  start_of_view({4, 2}, [](const at::Tensor& base) { return base.slice(0, 1, 3); }),
                  write_and_differentiate);
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].as_strided({2}, {1}, 0);
        return {in[0].sin()};
      },
      start_of(Kind::Tracked, {4}), write_and_differentiate);
}

TEST(FuzzedPrograms, ALaterWriteToAViewOfTheFunctionsOwn) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return {in[0].sum(1).view({2, 2}).relu_()};
      },
      start_of(Kind::Leaf, {4, 2}),
      [](const Called& called) {
        called.results[0].select(0, 1).add_(1);
        EXPECT_THROW(called.results[0].sum().backward(), c10::Error);
      });
}

TEST(FuzzedPrograms, ALaterWriteToADetachedResult) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor result = in[0].tanh();
        return {in[0] * result, result.detach()};
      },
      start_of(Kind::Leaf, {3}),
      [](const Called& called) {
        called.results[1].add_(0);
        EXPECT_THROW(called.results[0].sum().backward(), c10::Error);
      });
}

TEST(FuzzedPrograms, OperatorsThatNothingReadsThrow) {
  const auto truth = []() -> Start { return {.arguments = {at::ones({3}, at::kBool)}}; };
  expect_like_eager(
      [](const Tensors& in) -> Tensors {
        in[0].softmax(0);
        return {};
      },
      {{.make = truth}});
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].cumsum_(0);
        return {};
      },
      truth);
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].index_select(0, at::full({1}, 7, at::kLong));
        return {};
      },
      start_of(Kind::Plain, {3}));
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        (in[0] * 2).index_put_({at::arange(3)}, in[0]);
        in[0].index_put_({at::arange(3)}, in[0]);
        return {};
      },
      start_of(Kind::Plain, {3}));
}

TEST(FuzzedPrograms, ARealViewOfAConjugateThrowsThoughNothingReadsIt) {
  expect_like_eager(
      [](const Tensors& in) -> Tensors {
        at::view_as_real(in[0].conj());
        return {};
      },
      {{.make = []() -> Start { return {.arguments = {at::ones({3}, at::kComplexFloat)}}; }}});
}

TEST(FuzzedPrograms, AComplexViewThatBeginsBetweenNumbers) {
  const Program see_complex = [](const Tensors& in) -> Tensors {
    return {at::view_as_real(at::view_as_complex(in[0]) * 2)};
  };
  const auto start_at = [](int64_t offset) -> MakeStart {
    return [=]() -> Start {
      const at::Tensor base = plain({16});
      return {.arguments = {base.as_strided({3, 2}, {2, 1}, offset)}, .kept = {base}};
    };
  };
  expect_like_eager(
      see_complex,
      {{.make = start_at(0)}, {.make = start_at(4)}, {.make = start_at(1)}, {.make = start_at(2)}});
}

TEST(FuzzedPrograms, AViewMadeWithoutGradModeIsRefusedWithIt) {
  expect_refused(
      [](const Tensors& in) -> Tensors {
        const at::Tensor view = without_grad([&] { return in[0].view({4}); });
        return {view * 2};
      },
      start_of(Kind::Leaf, {2, 2}), "made without grad mode");
}

}  // namespace
}  // namespace foregrad::testing
