// What `Seen` tells apart, each in words; so that tests that compare by it can fail.
#include "support/seen.h"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>

#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Seen seen_of(const Tensors& tensors) {
  std::vector<NamedTensor> named;
  for (const auto& tensor : tensors) named.push_back({"t" + std::to_string(named.size()), tensor});
  Seen seen;
  seen.note_tensors("now", named);
  return seen;
}

void expect_told(const Tensors& eager, const Tensors& compiled, const char* words) {
  EXPECT_THAT(Seen::differences(seen_of(eager), seen_of(eager)), IsEmpty());
  EXPECT_THAT(Seen::differences(seen_of(eager), seen_of(compiled)), Contains(HasSubstr(words)));
}

at::Tensor written(at::Tensor tensor) { return tensor.add_(0); }

TEST(Seen, TellsEachFact) {
  const auto x = at::ones({2, 2});
  expect_told({x}, {at::Tensor()}, "defined: t0 now: eager `true`, compiled `false`");
  expect_told({x}, {at::ones({2, 2}, at::kDouble)}, "dtype of t0 now: eager `Float`");
  expect_told({x}, {at::ones({4})}, "sizes of t0 now: eager `[2, 2]`, compiled `[4]`");
  expect_told({x}, {x.t()}, "strides of t0 now");
  expect_told({x}, {at::zeros({2, 2})}, "values of t0 now");
  expect_told({at::zeros({1})}, {at::full({1}, -0.0)}, "values of t0 now");
  expect_told({x}, {at::ones({3, 2}).slice(0, 1)}, "offset of t0 now: eager `0`, compiled `2`");
  expect_told({x}, {at::ones({3, 2}).slice(0, 0, 2)}, "size in bytes of the storage");
  expect_told({x}, {written(at::ones({2, 2}))}, "version of t0 now: eager `1`, compiled `2`");
  expect_told({x}, {at::ones({2, 2}).requires_grad_()}, "requires_grad of t0 now");
  expect_told({x}, {at::ones({2, 2}).requires_grad_() * 1}, "is_leaf of t0 now");
  expect_told({x}, {at::ones({2, 2}).requires_grad_() * 1}, "presence of a grad_fn");
  expect_told({x}, {at::ones({4}).view({2, 2})}, "is_view of t0 now");
  const auto z = at::ones({1}, at::kComplexFloat);
  expect_told({z}, {z.conj()}, "conjugate bit of t0 now");
  const c10::InferenceMode inference;
  expect_told({x}, {at::ones({2, 2})}, "inference flag of t0 now");
}

TEST(Seen, TellsObjectsAliasesAndBasesApart) {
  const auto x = at::ones({4});
  expect_told({x, x}, {x, x.alias()}, "first object that is t1 now: eager `t0`, compiled `t1`");
  expect_told({x, x.view({4})}, {x, at::ones({5}).slice(0, 0, 4)},
              "first tensor in the storage of t1 now: eager `t0`, compiled `t1`");
  expect_told({x, x.view({4})}, {x, at::ones({4}).view({4})},
              "base of t1 now: eager `t0`, compiled `not held`");
}

TEST(Seen, TellsErrorsByTypeAndMessage) {
  const auto of = [](const std::function<void()>& act) {
    Seen seen;
    seen.attempt("it", act);
    return seen;
  };
  const auto fine = of([] {});
  const auto logic = of([] { throw std::logic_error("no"); });
  const auto runtime = of([] { throw std::runtime_error("no"); });
  EXPECT_THAT(Seen::differences(logic, logic), IsEmpty());
  EXPECT_THAT(Seen::differences(fine, logic),
              Contains(HasSubstr("compiled `std::logic_error: no`")));
  EXPECT_THAT(Seen::differences(logic, runtime), Contains(HasSubstr("std::runtime_error")));
}

/// A twin whose compiled form is another program.
Twin twin_of(const Program& eager, const Program& compiled) {
  Twin twin(eager);
  twin.compiled = compiled;
  return twin;
}

Tensors doubled(const Tensors& in) { return {in[0] * 2}; }

TEST(AsEager, FailsWhereGradientsOrRandomNumbersDiffer) {
  const MakeStart make = start_of(Kind::Leaf, {3});
  expect_like_eager(twin_of(doubled, doubled), {{.make = make}});
  const Twin detached = twin_of(doubled, [](const Tensors& in) -> Tensors {
    return {(in[0].detach() * 2).requires_grad_()};
  });
  const std::vector<Scene> scenes{{.make = make}};
  ::testing::TestPartResultArray failures;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
    expect_like_eager(detached, scenes);
    expect_like_eager(twin_of(doubled,
                              [](const Tensors& in) -> Tensors {
                                at::rand({1});
                                return doubled(in);
                              }),
                      scenes);
  }
  ASSERT_EQ(failures.size(), 6);
  EXPECT_THAT(failures.GetTestPartResult(0).message(), HasSubstr("is_leaf of result 0"));
  EXPECT_THAT(failures.GetTestPartResult(0).message(), HasSubstr("the gradient of argument 0"));
  EXPECT_THAT(failures.GetTestPartResult(3).message(), HasSubstr("the next random number"));
}

TEST(AsEager, FailsWhereEagerIsNotDeterministic) {
  ::testing::TestPartResultArray failures;
  int calls = 0;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
    const Program counting = [&](const Tensors& in) -> Tensors { return {in[0] + ++calls}; };
    expect_like_eager(twin_of(counting, counting), {{.make = start_of(Kind::Plain, {3})}});
  }
  ASSERT_EQ(failures.size(), 1);
  EXPECT_THAT(failures.GetTestPartResult(0).message(), HasSubstr("two eager runs differ"));
}

}  // namespace
}  // namespace foregrad::testing
