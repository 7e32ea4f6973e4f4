// What is compiled for which arguments, what is reused, and what is compiled again and why.
#include <gmock/gmock.h>

#include "behaviours/graph_text.h"
#include "foregrad/compile.h"

namespace foregrad::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

at::Tensor leaf(at::IntArrayRef sizes = {3}) { return at::ones(sizes).requires_grad_(); }
at::Tensor plain(at::IntArrayRef sizes = {3}) { return at::ones(sizes); }

at::Tensor of_four(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
                   const at::Tensor& d) {
  auto ab = a * b;
  auto cd = c * d;
  return ab + cd;
}

/// How many calls each specialisation had; the most recent first.
std::vector<size_t> calls_of(const Report& report) {
  std::vector<size_t> calls;
  for (const auto& specialisation : report.specialisations) calls.push_back(specialisation.calls);
  return calls;
}

/// The specialisation that was used last.
const Report::Specialisation& latest(const Report& report) { return report.specialisations.at(0); }

size_t inputs_of(const Report& report) {
  return lines_with(latest(report).joint_graph, "= user(").size();
}

TEST(CompileCache, FourTensorsAreOneFormForAllSuchTensors) {
  auto compiled = compile(of_four);
  for (int call = 0; call < 3; ++call) compiled(leaf(), leaf(), leaf(), leaf());
  const Report report = compiled.report();
  EXPECT_THAT(calls_of(report), ElementsAre(3u));
  EXPECT_THAT(report.recompiles, IsEmpty());
  EXPECT_EQ(latest(report).joint_graph, R"(graph {
  input %0: f32[3]{1} = user(0)
  input %1: f32[3]{1} = user(1)
  input %2: f32[3]{1} = user(2)
  input %3: f32[3]{1} = user(3)
  input %7: f32[3]{1} = tangent(output(0))
  %4: f32[3]{1} = aten::mul.Tensor(%0, %1)
  %5: f32[3]{1} = aten::mul.Tensor(%2, %3)
  %6: f32[3]{1} = aten::add.Tensor(%4, %5)
  backward %8: f32[3]{1} = aten::mul.Tensor(%7, %2)
  backward %9: f32[3]{1} = aten::mul.Tensor(%7, %3)
  backward %10: f32[3]{1} = aten::mul.Tensor(%7, %0)
  backward %11: f32[3]{1} = aten::mul.Tensor(%7, %1)
  output %6 = output(0)
  output %11 = grad(0)
  output %10 = grad(1)
  output %9 = grad(2)
  output %8 = grad(3)
}
)");
}

TEST(CompileCache, PlainTensorsHaveAFormWithoutBackward) {
  auto compiled = compile(of_four);
  for (int call = 0; call < 2; ++call) compiled(plain(), plain(), plain(), plain());
  const Report report = compiled.report();
  EXPECT_THAT(calls_of(report), ElementsAre(2u));
  EXPECT_EQ(latest(report).joint_graph, R"(graph {
  input %0: f32[3]{1} = user(0)
  input %1: f32[3]{1} = user(1)
  input %2: f32[3]{1} = user(2)
  input %3: f32[3]{1} = user(3)
  %4: f32[3]{1} = aten::mul.Tensor(%0, %1)
  %5: f32[3]{1} = aten::mul.Tensor(%2, %3)
  %6: f32[3]{1} = aten::add.Tensor(%4, %5)
  output %6 = output(0)
}
)");
}

TEST(CompileCache, OnlyWhatRequiresGradHasAGradient) {
  auto compiled = compile(of_four);
  compiled(plain(), leaf(), plain(), leaf());
  EXPECT_THAT(output_roles(latest(compiled.report()).joint_graph),
              ElementsAre("output(0)", "grad(1)", "grad(3)"));
}

TEST(CompileCache, EachPatternOfSharedTensorsHasAFormOfItsOwn) {
  auto compiled = compile(of_four);
  const auto a = leaf();
  const auto b = leaf();
  compiled(a, b, leaf(), leaf());
  EXPECT_EQ(inputs_of(compiled.report()), 4u);
  compiled(a, a, b, leaf());
  EXPECT_EQ(inputs_of(compiled.report()), 3u);
  compiled(a, b, a, leaf());
  EXPECT_EQ(inputs_of(compiled.report()), 3u);
  compiled(a, a, a, b);
  EXPECT_EQ(inputs_of(compiled.report()), 2u);
  compiled(a, a, a, a);
  EXPECT_EQ(inputs_of(compiled.report()), 1u);
  const auto is_now = [](const char* input, const char* same) {
    return ContainsRegex(std::string("input ") + input + " is .*the same tensor as input " + same +
                         "; was ");
  };
  EXPECT_THAT(compiled.report().recompiles,
              ElementsAre(is_now("1", "0"),
                          ContainsRegex("input 1 is .*; was .*the same tensor as input 0"),
                          is_now("1", "0"), is_now("3", "0")));
  EXPECT_THAT(compiled.report().specialisations, SizeIs(5));
}

TEST(CompileCache, KnownPatternsAreReusedInAnyOrder) {
  auto compiled = compile(of_four);
  for (int round = 0; round < 3; ++round) {
    const auto a = leaf();
    const auto b = leaf();
    compiled(a, b, leaf(), leaf());
    compiled(a, a, b, b);
    compiled(b, leaf(), leaf(), b);
  }
  const Report report = compiled.report();
  EXPECT_THAT(calls_of(report), ElementsAre(3u, 3u, 3u));
  EXPECT_THAT(report.recompiles, SizeIs(2));
}

TEST(CompileCache, GuardsSayWhatIsTheSameAndWhatSharesStorage) {
  auto compiled = compile(of_four);
  const auto base = plain({8});
  const auto a = leaf();
  compiled(a, a, base.slice(0, 0, 3), base.slice(0, 4, 7));
  EXPECT_THAT(
      latest(compiled.report()).guards,
      AllOf(ContainsRegex("input 0: f32\\[3\\]\\{1\\}, leaf that requires grad\n"),
            ContainsRegex("input 1: .*the same tensor as input 0\n"),
            ContainsRegex("input 2: .*view\n"),
            ContainsRegex("input 3: .*shares storage with input 2, of one base with input 2\n"),
            HasSubstr("grad mode true")));
}

TEST(CompileCache, ViewsOfOneBaseAreNotSeparateTensors) {
  auto compiled = compile(of_four);
  const auto base = plain({6});
  compiled(plain().slice(0, 0), plain().slice(0, 0), leaf(), leaf());
  compiled(base.slice(0, 0, 3), base.slice(0, 2, 5), leaf(), leaf());
  const Report report = compiled.report();
  EXPECT_THAT(report.specialisations, SizeIs(2));
  EXPECT_THAT(report.recompiles,
              ElementsAre(ContainsRegex("input 1 is .*shares storage with input 0")));
}

TEST(CompileCache, AnotherPlaceInTheStorageIsNoReasonToCompileAgain) {
  const auto base = at::arange(30, at::kFloat);
  auto of_one = compile([](const at::Tensor& x) -> at::Tensor { return x * 2; });
  auto of_two =
      compile([](const at::Tensor& x, const at::Tensor& y) -> at::Tensor { return x * y; });
  for (int64_t i = 0; i < 20; ++i) {
    const auto first = base.slice(0, i, i + 3);
    const auto second = base.slice(0, i + 5, i + 8);
    EXPECT_TRUE(at::equal(of_one(first), first * 2));
    EXPECT_TRUE(at::equal(of_two(first, second), first * second));
  }
  for (const Report& report : {of_one.report(), of_two.report()}) {
    EXPECT_THAT(calls_of(report), ElementsAre(20u));
    EXPECT_THAT(report.recompiles, IsEmpty());
    EXPECT_EQ(report.eager_calls, 0u);
  }
}

TEST(CompileCache, SizesDtypesFlagsAndModesAreGuarded) {
  auto compiled = compile([](const at::Tensor& x) -> at::Tensor { return x * 2; });
  compiled(leaf());
  compiled(leaf({2}));
  compiled(plain({2}));
  compiled(plain({2}).to(at::kDouble));
  compiled(plain({2, 2}));
  compiled(plain({2, 2}).t());
  {
    const at::NoGradGuard no_grad;
    compiled(plain({2, 2}).t());
  }
  EXPECT_THAT(compiled.report().recompiles,
              ElementsAre(ContainsRegex("input 0 is .*\\[2\\].*; was .*\\[3\\]"),
                          ContainsRegex("input 0 is .*; was .*requires grad"),
                          ContainsRegex("input 0 is f64.*; was f32"),
                          ContainsRegex("input 0 is .*\\[2,2\\].*; was .*\\[2\\]"),
                          ContainsRegex("input 0 is .*\\{1,2\\}.*; was .*\\{2,1\\}"),
                          ContainsRegex("grad mode false.*; was grad mode true")));
}

TEST(CompileCache, NumbersAndAbsentTensorsAreGuardedByValue) {
  auto compiled = compile([](const at::Tensor& x, int64_t times, const std::optional<at::Tensor>& y,
                             double scale) -> at::Tensor {
    return y && y->defined() ? x * times + *y * scale : x * times;
  });
  using Optional = std::optional<at::Tensor>;
  compiled(leaf(), 2, Optional(), 1.5);
  compiled(leaf(), 3, Optional(), 1.5);
  compiled(leaf(), 3, Optional(plain()), 1.5);
  compiled(leaf(), 3, Optional(plain()), 2.5);
  compiled(leaf(), 3, Optional(at::Tensor()), 2.5);
  compiled(leaf(), 2, Optional(), 1.5);
  const Report report = compiled.report();
  EXPECT_THAT(report.specialisations, SizeIs(5));
  EXPECT_THAT(report.recompiles, ElementsAre(ContainsRegex("argument 0 is 3; was 2"),
                                             ContainsRegex("argument 1 is true; was false"),
                                             ContainsRegex("argument 2 is 2.5; was 1.5"),
                                             ContainsRegex("input 1 is undefined; was ")));
  std::vector<size_t> calls = calls_of(report);
  std::sort(calls.begin(), calls.end());
  EXPECT_THAT(calls, ElementsAre(1u, 1u, 1u, 1u, 2u));
}

TEST(CompileCache, AWrittenArgumentIsGuardedAsOthersAre) {
  auto compiled = compile([](const at::Tensor& x, const at::Tensor& y) -> at::Tensor {
    x.add_(y);
    return x * y;
  });
  for (int call = 0; call < 2; ++call) compiled(plain(), leaf());
  for (int call = 0; call < 2; ++call) compiled(plain(), plain());
  const Report report = compiled.report();
  EXPECT_THAT(calls_of(report), ElementsAre(2u, 2u));
  EXPECT_THAT(report.recompiles, ElementsAre(ContainsRegex("input 1 is .*; was .*requires grad")));
  EXPECT_THAT(output_roles(latest(report).joint_graph), ElementsAre("mutated(0)", "output(0)"));
}

TEST(CompileCache, InvalidateForgetsAll) {
  auto compiled = compile(of_four);
  compiled(leaf(), leaf(), leaf(), leaf());
  compiled.invalidate();
  EXPECT_THAT(compiled.report().specialisations, IsEmpty());
  compiled(leaf(), leaf(), leaf(), leaf());
  EXPECT_THAT(calls_of(compiled.report()), ElementsAre(1u));
}

}  // namespace
}  // namespace foregrad::testing
