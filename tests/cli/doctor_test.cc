#include "cli/doctor.h"

#include <gtest/gtest.h>

#include "command_run.h"

namespace foregrad::cli {
namespace {

using ::testing::HasSubstr;
using testing::run_command;

constexpr const char* kCpuinfo =
    "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu sse4_2 avx2 avx512fx fma\n"
    "processor\t: 1\nmodel name\t: Other\nflags\t\t: avx512f\n";

TEST(DoctorTest, ReadsCpuinfo) {
  EXPECT_EQ(cpu_name(kCpuinfo), "Some CPU @ 2 GHz");
  EXPECT_EQ(cpu_features(kCpuinfo), (std::vector<std::string>{"sse4_2", "fma", "avx2"}));
}

TEST(DoctorTest, ReadsCpuinfoOfOtherKinds) {
  EXPECT_EQ(cpu_name(""), "unknown");
  EXPECT_TRUE(cpu_features("").empty());
  EXPECT_EQ(cpu_name("model name"), "unknown");
  EXPECT_TRUE(cpu_features("flags").empty());
}

TEST(DoctorTest, FailedSelfCheck) {
  SelfCheck check;
  check.ok = false;
  check.libtorch_version = "9.9";
  check.trace_key = "Some key";
  check.lines = {"the key is taken"};
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(print_self_check(check), ExitCode::kMismatch);
  const std::string output = ::testing::internal::GetCapturedStdout();
  for (const char* text : {"Some key", "self-check          FAILED", "  the key is taken\n"})
    EXPECT_THAT(output, HasSubstr(text));
}

TEST(DoctorTest, PrintsVersionsAndPasses) {
  const testing::CommandRun run = run_command({"doctor"});
  EXPECT_EQ(run.code, ExitCode::kOk) << run.errors;
  for (const char* row :
       {"foregrad ", "libtorch ", "built with ", "CPU features", "operator threads",
        "OMP_WAIT_POLICY", "trace key", "self-check          passed"})
    EXPECT_THAT(run.output, HasSubstr(row));
}

}  // namespace
}  // namespace foregrad::cli
