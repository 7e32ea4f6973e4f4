// A fuzzer that finds nothing may be blind: each wrong compiler here must be seen.
#include "cli/fuzz/runner.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "cli/fuzz/generator.h"
#include "programs.h"

namespace foregrad::cli::fuzz {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeed = 7;

/// Returns the first difference among some hundred programs.
std::optional<Difference> first_found(const Compiler& compiler) {
  for (uint64_t number = 0; number < 400; ++number) {
    const Verdict verdict = run_program(draw_program(kSeed, number), compiler);
    if (verdict.difference) return verdict.difference;
  }
  return std::nullopt;
}

template <class Wrong>
void expect_found(Wrong wrong, const char* kind) {
  const auto difference = first_found(testing::wrong_compiler(wrong));
  ASSERT_TRUE(difference);
  EXPECT_THAT(difference->kind, HasSubstr(kind)) << difference->detail;
}

TEST(FuzzRunner, EagerIsAsEager) {
  for (uint64_t number = 0; number < 2000; ++number) {
    const Verdict verdict = run_program(draw_program(kSeed, number), testing::compile_to_eager);
    ASSERT_FALSE(verdict.difference) << number << ": " << verdict.difference->detail;
    ASSERT_TRUE(verdict.refusals.empty());
  }
}

TEST(FuzzRunner, FindsASkippedWrite) {
  expect_found(
      [](const Function& function, const Tensors& x) {
        if (x.empty()) return function(x);
        const at::Tensor before = x[0].detach().clone();
        const int64_t version = x[0]._version();
        Tensors outputs = function(x);
        const bool is_kept = x[0].sizes() == before.sizes();
        // `data()` counts versions by itself.
        if (x[0]._version() != version && is_kept) x[0].data().copy_(before);
        return outputs;
      },
      "elements of an");
}

TEST(FuzzRunner, FindsAClonedOutput) {
  const auto difference = first_found(testing::wrong_compiler(testing::clone_an_output));
  EXPECT_TRUE(difference);
}

TEST(FuzzRunner, FindsADroppedGradient) {
  expect_found(
      [](const Function& function, const Tensors& x) {
        Tensors outputs = function(x);
        for (const at::Tensor& output : outputs) {
          if (output.requires_grad() && !output.is_leaf() && !output.is_view()) {
            output.register_hook([](const at::Tensor& tangent) { return at::zeros_like(tangent); });
            break;
          }
        }
        return outputs;
      },
      "gradient");
}

TEST(FuzzRunner, FindsABumpedVersion) {
  expect_found(
      [](const Function& function, const Tensors& x) {
        Tensors outputs = function(x);
        if (!x.empty()) x[0].unsafeGetTensorImpl()->bump_version();
        return outputs;
      },
      "version of an input");
}

TEST(FuzzRunner, FindsAnOutputThatForgetsItRequiresGrad) {
  expect_found(
      [](const Function& function, const Tensors& x) {
        Tensors outputs = function(x);
        for (at::Tensor& output : outputs) {
          if (!output.is_leaf()) output = output.detach();
        }
        return outputs;
      },
      "requires_grad of an output");
}

TEST(FuzzRunner, FindsOtherStrides) {
  expect_found(
      [](const Function& function, const Tensors& x) {
        Tensors outputs = function(x);
        for (at::Tensor& output : outputs) {
          if (output.dim() == 2 && output.is_leaf()) output = output.t().contiguous().t();
        }
        return outputs;
      },
      "strides of an output");
}

TEST(FuzzRunner, FindsBrokenAliasing) {
  expect_found(
      [](const Function& function, const Tensors& x) {
        Tensors outputs = function(x);
        for (at::Tensor& output : outputs) {
          for (const at::Tensor& argument : x) {
            if (output.is_same(argument)) output = output.view(output.sizes());
          }
        }
        return outputs;
      },
      "");
}

TEST(FuzzRunner, FindsArgumentsTakenApart) {
  expect_found(
      [](const Function& function, const Tensors& x) {
        Tensors apart;
        for (const at::Tensor& argument : x) apart.push_back(argument.clone());
        return function(apart);
      },
      "");
}

TEST(FuzzRunner, FindsAStaleSpecialisation) {
  const Compiler compiler = [](Function function) -> CompiledFunction {
    auto kept = std::make_shared<std::optional<Tensors>>();
    return {.call =
                [=](const Tensors& x) {
                  if (!*kept) *kept = function(x);
                  return **kept;
                },
            .report = [] { return Report{}; }};
  };
  EXPECT_TRUE(first_found(compiler));
}

TEST(FuzzRunner, FindsAChangedGenerator) {
  expect_found(
      [](const Function& function, const Tensors& x) {
        Tensors outputs = function(x);
        at::rand({1});
        return outputs;
      },
      "generator");
}

TEST(FuzzRunner, FindsAChangedGradMode) {
  expect_found(
      [](const Function& function, const Tensors& x) {
        Tensors outputs = function(x);
        at::GradMode::set_enabled(!at::GradMode::is_enabled());
        return outputs;
      },
      "exception of compiled alone");
}

TEST(FuzzRunner, FindsExceptions) {
  expect_found(
      [](const Function& function, const Tensors& x) {
        try {
          return function(x);
        } catch (const c10::Error&) {
          return Tensors{};
        }
      },
      "exception of eager alone");
  expect_found(
      [](const Function& function, const Tensors& x) {
        try {
          return function(x);
        } catch (const c10::Error&) {
          throw std::runtime_error("other");
        }
      },
      "exception's type");
}

TEST(FuzzRunner, FindsASecondCompilation) {
  const Compiler compiler = [](Function function) -> CompiledFunction {
    return {.call = std::move(function), .report = [] {
              Report report;
              report.specialisations.resize(2);
              report.recompiles = {"a guard failed"};
              return report;
            }};
  };
  const auto difference = first_found(compiler);
  ASSERT_TRUE(difference);
  EXPECT_THAT(difference->kind, HasSubstr("second compilation"));
}

TEST(FuzzRunner, TellsRefusals) {
  const Compiler compiler = [](Function function) -> CompiledFunction {
    return {.call = std::move(function), .report = [] {
              Report report;
              report.eager_calls = 1;
              report.fallback_reasons = {"no wish"};
              return report;
            }};
  };
  const Verdict verdict = run_program(testing::small_program(), compiler);
  EXPECT_FALSE(verdict.difference);
  EXPECT_THAT(verdict.refusals, ::testing::ElementsAre("no wish"));
}

TEST(FuzzRunner, ShowsOnlyTheKindAskedFor) {
  const Compiler compiler = testing::wrong_compiler(testing::clone_an_output);
  const Program program = testing::small_program();
  const auto difference = run_program(program, compiler).difference;
  ASSERT_TRUE(difference);
  EXPECT_TRUE(shows(program, difference->kind, compiler));
  EXPECT_FALSE(shows(program, "something else", compiler));
  Program impossible = program;
  impossible.inputs.arguments = {{.value = 5}};
  EXPECT_FALSE(shows(impossible, difference->kind, compiler));
}

TEST(FuzzRunner, CompilesByForegrad) {
  const CompiledFunction compiled =
      compile_by_foregrad([](const Tensors& x) -> Tensors { return {x[0].sin()}; });
  const at::Tensor x = at::ones({2});
  EXPECT_TRUE(at::equal(compiled.call({x})[0], x.sin()));
  EXPECT_EQ(compiled.report().specialisations.size(), 1U);
}

}  // namespace
}  // namespace foregrad::cli::fuzz
