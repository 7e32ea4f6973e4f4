#include "foregrad/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foregrad/compile.h"

namespace foregrad {
namespace {

TEST(Report, TellsGraphsGuardsStagesAndFallbacks) {
  auto compiled = compile([](const at::Tensor& x) -> at::Tensor { return x.exp(); });
  compiled(at::ones({3}).requires_grad_());
  Report report = compiled.report();
  ASSERT_EQ(report.specialisations.size(), 1u);
  EXPECT_EQ(report.specialisations[0].calls, 1u);
  EXPECT_EQ(report.specialisations[0].saved_bytes, 12u);
  EXPECT_GT(report.specialisations[0].compile_ms, 0);
  report.fallback_reasons = {"no such operator"};
  const std::string text = to_text(report);
  for (const char* part : {"aten::exp", "aten::mul.Tensor", "f32[3]{1}, leaf that requires grad",
                           "grad mode true", "joint", "no such operator"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(part));
  }
  EXPECT_THAT(report.specialisations[0].forward_dot, ::testing::StartsWith("digraph"));
}

}  // namespace
}  // namespace foregrad
