// Results that share memory with an argument.
#include <gmock/gmock.h>

#include "behaviours/callers.h"
#include "behaviours/graph_text.h"

namespace foregrad::testing {
namespace {

using ::testing::IsEmpty;

constexpr Kind kAll[] = {Kind::Plain, Kind::Leaf, Kind::Tracked};

// A result that is a view of an input is regenerated: nothing is computed, no tangent is taken.
TEST(Behaviours, B045_AResultIsAViewOfAnInput) {
  for (const Kind kind : kAll) {
    SCOPED_TRACE(name_of(kind));
    const Report report = expect_as_eager(
        [](const Tensors& in) -> Tensors { return {in[0].view({-1})}; }, start_of(kind, {2, 3}));
    for (const auto& specialisation : report.specialisations) {
      EXPECT_THAT(operators(specialisation.forward_graph), IsEmpty());
      EXPECT_THAT(lines_with(specialisation.joint_graph, "tangent("), IsEmpty());
    }
  }
}

// Views of an input that is written and of one that is not.
TEST(Behaviours, B046_ViewsOfAWrittenAndOfAnotherInput) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].mul_(2);
          return {in[0].view({-1}), in[1].t()};
        },
        start_of({kind, kind}, {2, 3}));
  }
}

// A view of a written input hangs off the input's new value.
TEST(Behaviours, B047_AViewOfAWrittenInput) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    const Program program = [](const Tensors& in) -> Tensors {
      in[0].mul_(in[1]);
      return {in[0].view({-1}), in[0] * 2};
    };
    expect_as_eager(program, start_of({kind, Kind::Leaf}, {2, 3}));
    expect_as_eager(program, start_of({kind, Kind::Plain}, {2, 3}), write_results);
  }
}

// An input is transposed and a diagonal of it returned, another is written, others are computed.
TEST(Behaviours, B048_MetadataDataAndPlainResultsTogether) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].transpose_(0, 1);
          in[1].mul_(2);
          return {in[0].diagonal(), in[1].view({-1}), in[2] + in[1], in[2] * 3};
        },
        start_of({kind, kind, Kind::Leaf}, {3, 3}));
  }
}

// Two inputs are views of one base; each result is a view of its own input.
TEST(Behaviours, B049_EachResultIsAViewOfItsOwnInput) {
  for (const Kind kind : kAll) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          return {in[0].view({-1}), in[1].view({4, 1}), in[0].t()};
        },
        [kind]() -> Start {
          Start start;
          auto base = make(start, kind, {4});
          start.arguments = {base.view({2, 2}), base.view({1, 4})};
          start.kept.push_back(base);
          return start;
        },
        name_views);
  }
}

// All parts of an input, alone and beside an ordinary view.
TEST(Behaviours, B050_PartsOfAnInput) {
  for (const Kind kind : kAll) {
    SCOPED_TRACE(name_of(kind));
    for (const bool with_view : {false, true}) {
      SCOPED_TRACE(with_view);
      expect_as_eager(
          [with_view](const Tensors& in) -> Tensors {
            Tensors out = in[0].unbind(0);
            if (with_view) out.push_back(in[0].view({-1}));
            return out;
          },
          start_of(kind, {2, 3}));
    }
  }
}

// Writing a part, or the input that parts were taken of, is autograd's error.
TEST(Behaviours, B051_WritesToPartsOfAnInputAreErrors) {
  const Program unbind = [](const Tensors& in) -> Tensors { return in[0].unbind(0); };
  for (const Kind kind : kAll) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(unbind, start_of(kind, {2, 3}), write_results);
    expect_as_eager(unbind, start_of(kind, {2, 3}), write_arguments);
  }
}

// An input detached, and another as it is.
TEST(Behaviours, B052_ADetachedInputAndAnInputAsItIs) {
  for (const Kind kind : kAll) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          return {in[0].detach(), in[1]};
        },
        start_of({kind, kind}, {2, 3}));
  }
}

// A regenerated view is made by the view operator that the function used.
TEST(Behaviours, B053_ARegeneratedViewNamesItsOperator) {
  for (const Kind kind : {Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          return {in[0].view({-1}), in[0].t().unsqueeze(0), in[0].select(0, 1)};
        },
        start_of(kind, {2, 3}), name_views);
  }
}

// A view, transposed, whose gradient comes in another layout.
TEST(Behaviours, B054_AViewTakesATangentOfAnotherLayout) {
  for (const Kind kind : {Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          return {in[0].view({3, 2}).transpose(0, 1)};
        },
        start_of(kind, {2, 3}),
        [](const Called& called) {
          called.results[0].backward(plain({3, 2}).t());
        });
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          return {in[0].sin(), in[0].view({3, 2}).t()};
        },
        start_of(kind, {2, 3}),
        [](const Called& called) {
          const Tensors tangents{plain({3, 2}).t(), plain({3, 2}).t()};
          torch::autograd::backward(called.results, tangents);
        });
  }
}

}  // namespace
}  // namespace foregrad::testing
