// Results that share memory with each other, and with no argument.
#include <gmock/gmock.h>

#include "behaviours/callers.h"
#include "behaviours/graph_text.h"

namespace foregrad::testing {
namespace {

using ::testing::IsEmpty;

void expect_for_both(const Program& program, const Caller& caller = differentiate) {
  for (const Kind kind : {Kind::Plain, Kind::Leaf}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(program, start_of(kind, {2, 3}), caller);
  }
}

// A tensor and its view: a later write to one shows in the other.
TEST(Behaviours, B056_ATensorAndItsView) {
  for (const size_t written : {0, 1}) {
    SCOPED_TRACE(written);
    expect_for_both(
        [](const Tensors& in) -> Tensors {
          auto y = in[0] * 2;
          return {y, y.view({-1})};
        },
        [written](const Called& called) {
          called.results[written].mul_(3);
          differentiate(called);
        });
  }
}

// One view of an intermediate: the graph gives the intermediate, and the view is taken of it.
TEST(Behaviours, B057_OneViewOfAnIntermediate) {
  for (const Kind kind : {Kind::Plain, Kind::Leaf}) {
    SCOPED_TRACE(name_of(kind));
    const Report report =
        expect_as_eager([](const Tensors& in) -> Tensors { return {(in[0] * 2).view({-1})}; },
                        start_of(kind, {2, 3}));
    for (const auto& specialisation : report.specialisations)
      EXPECT_THAT(lines_with(specialisation.forward_graph, "= output("), IsEmpty());
  }
}

// Two views of one intermediate.
TEST(Behaviours, B058_TwoViewsOfAnIntermediate) {
  expect_for_both([](const Tensors& in) -> Tensors {
    auto y = in[0] * 2;
    return {y.view({-1}), y.unsqueeze(0)};
  });
}

// The view first, its base second.
TEST(Behaviours, B059_AViewBeforeItsBase) {
  expect_for_both([](const Tensors& in) -> Tensors {
    auto y = in[0] * 2;
    return {y.view({-1}), y};
  });
}

// A base, a view and a detached slice: they differ in what they require.
TEST(Behaviours, B060_ABaseAViewAndADetachedSlice) {
  expect_for_both([](const Tensors& in) -> Tensors {
    auto y = in[0] * 2;
    return {y, y.view({-1}), y.detach().slice(0, 0, 1)};
  });
}

// One intermediate twice, and a view of it.
TEST(Behaviours, B061_OneIntermediateTwiceAndAView) {
  expect_for_both([](const Tensors& in) -> Tensors {
    auto y = in[0] * 2;
    return {y, y, y.view({-1})};
  });
}

// A view that was taken without grad.
TEST(Behaviours, B062_AViewOfAnIntermediateUnderNoGrad) {
  for (const bool with_base : {true, false}) {
    SCOPED_TRACE(with_base);
    expect_for_both([with_base](const Tensors& in) -> Tensors {
      auto y = in[0] * 2;
      const at::NoGradGuard no_grad;
      auto view = y.view({-1});
      return with_base ? Tensors{y, view} : Tensors{view};
    });
  }
}

// An intermediate is transposed in place.
TEST(Behaviours, B063_AnIntermediateIsTransposed) {
  expect_for_both([](const Tensors& in) -> Tensors {
    auto y = in[0] * 2;
    y.t_();
    return {y};
  });
}

// An intermediate is transposed, then detached in place: a tensor of its own, no view.
TEST(Behaviours, B064_AnIntermediateIsTransposedAndDetached) {
  expect_for_both([](const Tensors& in) -> Tensors {
    auto y = in[0] * 2;
    y.t_();
    y.detach_();
    return {y};
  });
}

// Views from before and after a transposition in place.
TEST(Behaviours, B065_ViewsBeforeAndAfterATransposition) {
  for (const bool with_base : {true, false}) {
    SCOPED_TRACE(with_base);
    expect_for_both([with_base](const Tensors& in) -> Tensors {
      auto y = in[0] * 2;
      auto before = y.view({-1});
      y.t_();
      auto after = y.unsqueeze(0);
      return with_base ? Tensors{before, after, y} : Tensors{before, after};
    });
  }
}

// The caller writes a result that is a view.
TEST(Behaviours, B066_TheCallerWritesAResultThatIsAView) {
  expect_for_both([](const Tensors& in) -> Tensors { return {(in[0] * 2).view({-1})}; },
                  write_results);
  expect_as_eager([](const Tensors& in) -> Tensors { return {at::matmul(in[0], in[1])}; },
                  []() -> Start {
                    return {{leaf({2, 2, 3}), leaf({3, 4})}};
                  },
                  write_results);
}

// The parts of an intermediate alone, with it, with a view of it, with both; the ordinary ones are
// then written.
TEST(Behaviours, B067_PartsOfAnIntermediateInFourMixes) {
  for (const bool with_base : {false, true}) {
    for (const bool with_view : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "base " << with_base << ", view " << with_view);
      const Program program = [=](const Tensors& in) -> Tensors {
        auto y = in[0] * 2;
        Tensors out;
        if (with_base) out.push_back(y);
        if (with_view) out.push_back(y.view({-1}));
        for (const auto& part : y.unbind(0)) out.push_back(part);
        return out;
      };
      expect_for_both(program);
      const size_t ordinary = with_base + with_view;
      for (size_t written = 0; written < ordinary; ++written) {
        SCOPED_TRACE(written);
        expect_for_both(program, [written](const Called& called) {
          called.results[written].mul_(3);
          differentiate(called);
        });
      }
    }
  }
}

// The views of an intermediate are made by the operators that the function used.
TEST(Behaviours, B068_ViewsOfAnIntermediateNameTheirOperators) {
  expect_for_both(
      [](const Tensors& in) -> Tensors {
        auto y = in[0] * 2;
        return {y.view({-1}), y.t().select(0, 1)};
      },
      name_views);
}

}  // namespace
}  // namespace foregrad::testing
