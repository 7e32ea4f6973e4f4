#include "foregrad/self_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/version.h>

#include "capture/keys.h"

namespace foregrad {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(SelfCheckReport, PassesAndSaysWhatIsCovered) {
  const SelfCheck check = self_check();
  EXPECT_TRUE(check.ok);
  EXPECT_THAT(check.libtorch_version, HasSubstr(TORCH_VERSION));
  EXPECT_EQ(check.trace_key, c10::toString(kTraceKey));
  EXPECT_THAT(check.lines, ElementsAre(EndsWith("operators have the trace handler")));
}

TEST(SelfCheckReport, FailsWithALineForEachFailure) {
  torch::Library library(torch::Library::IMPL, "_", kTraceKey, __FILE__, __LINE__);
  library.fallback(torch::CppFunction::makeFallthrough());
  const SelfCheck check = self_check();
  EXPECT_FALSE(check.ok);
  EXPECT_THAT(check.lines, ElementsAre(HasSubstr("trace key"), EndsWith("trace handler")));
}

}  // namespace
}  // namespace foregrad
