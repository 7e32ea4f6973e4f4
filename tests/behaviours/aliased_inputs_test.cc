// Arguments in one storage of which one is written: what programs do with them.
#include "behaviours/aliases.h"
#include "behaviours/callers.h"

namespace foregrad::testing {
namespace {

at::Tensor flat(const at::Tensor& base) { return base.view({-1}); }
at::Tensor two_by_two(const at::Tensor& base) { return base.view({2, 2}); }

void expect_for_both(const Program& program, const std::vector<int64_t>& sizes,
                     const std::vector<ViewOf>& views) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(program, views_of_one(kind, sizes, views));
  }
}

// One alias is written, a view of the other returned.
TEST(Behaviours, B072_OneIsWrittenAViewOfTheOtherReturned) {
  expect_for_both(
      [](const Tensors& in) -> Tensors {
        in[0].mul_(2);
        return {in[1].view({-1}), in[0] + 1};
      },
      {2, 2}, {flat, two_by_two});
}

/// Views of one base with a leaf between them.
MakeStart first_and_third(Kind kind) {
  return [kind]() -> Start {
    Start start;
    auto base = make(start, kind, {2, 2});
    start.arguments = {flat(base), leaf({4}), two_by_two(base)};
    start.kept.push_back(base);
    return start;
  };
}

// The first and third inputs are aliases, the second is unrelated.
TEST(Behaviours, B073_TheFirstAndThirdAreAliases) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[2].mul_(3);
          return {in[2].view({-1}), in[0] * in[1]};
        },
        first_and_third(kind));
  }
}

// Aliased inputs, writes of data and metadata, views of inputs and of intermediates, all at once.
TEST(Behaviours, B076_EverythingAtOnce) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].mul_(2);
          in[2].t_();
          auto y = in[0] * in[1];
          return {in[2].view({-1}).slice(0, 0, 2), in[0].view({2, 2}), y, y.view({2, 2}), in[1]};
        },
        [kind]() -> Start {
          Start start;
          auto base = make(start, kind, {1, 4});
          start.arguments = {flat(base), leaf({4}), base.view({4, 1})};
          start.kept.push_back(base);
          return start;
        });
  }
}

// Aliases, and a tensor that has nothing to do with them.
TEST(Behaviours, B078_AliasesAndAnUnrelatedTensor) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].mul_(2);
          return {in[0] + in[1], in[1] * in[2]};
        },
        [kind]() -> Start {
          Start start;
          auto base = make(start, kind, {6});
          start.arguments = {base.slice(0, 0, 4), base.slice(0, 2, 6), leaf({4})};
          start.kept.push_back(base);
          return start;
        });
  }
}

// The data of one alias is written, the other is transposed.
TEST(Behaviours, B080_OneIsWrittenTheOtherTransposed) {
  expect_for_both(
      [](const Tensors& in) -> Tensors {
        in[0].mul_(2);
        in[1].t_();
        return {in[0].sum() + in[1].sum(), in[1] * 2};
      },
      {2, 3}, {flat, [](const at::Tensor& base) {
                 return base.view({3, 2});
               }});
}

// Two groups of aliases.
TEST(Behaviours, B081_TwoGroupsOfAliases) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].mul_(2);
          in[3].add_(in[0]);
          return {in[0] + in[1], in[2] * in[3]};
        },
        [kind]() -> Start {
          Start start;
          auto first = make(start, kind, {6});
          auto second = make(start, kind, {6});
          start.arguments = {first.slice(0, 0, 4), second.slice(0, 0, 4), first.slice(0, 2, 6),
                             second.slice(0, 1, 5)};
          start.kept.insert(start.kept.end(), {first, second});
          return start;
        });
  }
}

// All inputs are aliases.
TEST(Behaviours, B082_AllInputsAreAliases) {
  expect_for_both(
      [](const Tensors& in) -> Tensors {
        in[1].mul_(2);
        return {in[0] + in[1] + in[2]};
      },
      {6}, {slice_of(0, 4), slice_of(1, 5), slice_of(2, 6)});
}

// An unrelated tensor stands before the aliases.
TEST(Behaviours, B083_AnUnrelatedTensorBeforeTheAliases) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[1].mul_(in[0]);
          return {in[2] * 2, in[0] + in[1]};
        },
        [kind]() -> Start {
          Start start;
          auto base = make(start, kind, {6});
          start.arguments = {leaf({4}), base.slice(0, 0, 4), base.slice(0, 2, 6)};
          start.kept.push_back(base);
          return start;
        });
  }
}

/// The same views of tensors of several sizes.
std::vector<Scene> of_several_sizes(Kind kind, const std::vector<ViewOf>& views) {
  std::vector<Scene> scenes;
  for (const int64_t size : {4, 6, 3})
    scenes.push_back({.make = views_of_one(kind, {size, 2}, views)});
  return scenes;
}

// Two unsqueezed views of one tensor, both written, of several sizes.
TEST(Behaviours, B084_TwoUnsqueezedViewsOfSeveralSizes) {
  const Program program = [](const Tensors& in) -> Tensors {
    in[0].mul_(2);
    in[1].add_(1);
    return {in[0].squeeze(0) + in[1].squeeze(1)};
  };
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(program, of_several_sizes(
                                 kind, {[](const at::Tensor& base) { return base.unsqueeze(0); },
                                        [](const at::Tensor& base) { return base.unsqueeze(1); }}));
  }
}

// Two equal slices with an offset, both written, of several sizes.
TEST(Behaviours, B085_TwoEqualSlicesOfSeveralSizes) {
  const Program program = [](const Tensors& in) -> Tensors {
    in[0].mul_(2);
    in[1].add_(1);
    return {in[0] + in[1]};
  };
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(program, of_several_sizes(kind, {slice_of(1, 9), slice_of(1, 9)}));
  }
}

// A tensor and a part of it are written, with scalar arguments that are equal.
TEST(Behaviours, B086_ATensorAndAPartOfItWithEqualScalars) {
  const auto fn = [](const at::Tensor& whole, const at::Tensor& part, int64_t first,
                     int64_t second) -> at::Tensor {
    whole.add_(first);
    part.add_(second);
    return whole * 2;
  };
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        {fn, [](const auto& f, const Tensors& in) -> Tensors { return {f(in[0], in[1], 3, 3)}; }},
        views_of_one(kind, {6}, {itself, slice_of(1, 4)}));
  }
}

}  // namespace
}  // namespace foregrad::testing
