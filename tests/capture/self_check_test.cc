#include "capture/self_check.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/version.h>

#include "capture/keys.h"
#include "capture/recorder.h"
#include "capture/registration.h"
#include "capture/trace_handler.h"

namespace foregrad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

torch::Library library_on(const char* name_space, c10::DispatchKey key) {
  return torch::Library(torch::Library::IMPL, name_space, key, __FILE__, __LINE__);
}

at::Tensor exp_as_neg(const at::Tensor& x) { return x.neg(); }
at::Tensor failing_exp(const at::Tensor& /*x*/) { TORCH_CHECK(false, "exp is broken"); }
at::Tensor ones_as_full(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
                        std::optional<bool> /*pin_memory*/) {
  return at::full(sizes, 1, dtype.value());
}
at::Tensor strange_neg(const at::Tensor& x) { return x; }
at::Tensor strange_reshape(const at::Tensor& x, at::IntArrayRef /*sizes*/) { return x; }
at::Tensor strange_view(const at::Tensor& x, at::IntArrayRef /*sizes*/) { return x; }

TEST(SelfCheck, PassesWithTheLibtorchThatItWasBuiltWith) {
  const CaptureCheck check = check_capture();
  EXPECT_THAT(check.failures, IsEmpty());
  EXPECT_EQ(check.libtorch_version.substr(0, check.libtorch_version.find('+')), TORCH_VERSION);
  EXPECT_EQ(check.trace_key, c10::toString(kTraceKey));
  EXPECT_EQ(check.operators, registered_operators());
}

TEST(SelfCheck, ComparesMajorAndMinorVersion) {
  for (const char* running : {"2.15.0", "2.15.3", "2.15.1+cpu", "2.15"})
    EXPECT_EQ(version_problem(running, "2.15.0"), std::nullopt) << running;
  for (const char* running : {"2.14.0", "2.1", "2.150.0", "3.15.0", "unknown", ""})
    EXPECT_NE(version_problem(running, "2.15.0"), std::nullopt) << running;
  const std::string problem = version_problem("2.14.1", "2.15.0").value();
  EXPECT_THAT(problem, HasSubstr("expected 2.15.x"));
  EXPECT_THAT(problem, HasSubstr("got 2.14.1"));
}

TEST(SelfCheck, FindsAKernelInPlaceOfTheTraceHandler) {
  {
    auto library = library_on("aten", kTraceKey);
    library.impl("neg", TORCH_FN(strange_neg));
    EXPECT_THAT(check_capture().failures,
                ElementsAre(AllOf(HasSubstr("trace key `FPGA`"), HasSubstr("`aten::neg`"))));
  }
  EXPECT_THAT(check_capture().failures, IsEmpty());
}

TEST(SelfCheck, FindsAKernelThatTheTraceHandlerHides) {
  const auto handler = c10::Dispatcher::singleton().registerImpl(
      {"aten::add", "Tensor"}, kTraceKey,
      c10::KernelFunction::makeFromBoxedFunction<&handle_traced_operator>(), std::nullopt, nullptr,
      "registered by a test");
  EXPECT_THAT(check_capture().failures, ElementsAre(HasSubstr("for `aten::add.Tensor`. Load")));
}

TEST(SelfCheck, FindsAKernelForACompositeOnTheTraceKey) {
  auto library = library_on("aten", kTraceKey);
  library.impl("reshape", TORCH_FN(strange_reshape));
  EXPECT_THAT(check_capture().failures, Contains(HasSubstr("for `aten::reshape`")));
}

TEST(SelfCheck, FindsAFallbackOnTheTraceKey) {
  auto library = library_on("_", kTraceKey);
  library.fallback(torch::CppFunction::makeFallthrough());
  EXPECT_THAT(check_capture().failures, ElementsAre(HasSubstr("fallback for all operators")));
}

TEST(SelfCheck, FindsAKernelOnTheFrontKey) {
  auto library = library_on("aten", kFrontKey);
  library.impl("view", TORCH_FN(strange_view));
  EXPECT_THAT(check_capture().failures,
              Contains(AllOf(HasSubstr("front key `DeferredInit`"), HasSubstr("`aten::view`"))));
}

TEST(SelfCheck, FindsATraceThatIsNotEager) {
  auto library = library_on("aten", c10::DispatchKey::Functionalize);
  library.impl("exp", TORCH_FN(exp_as_neg));
  EXPECT_THAT(check_capture().failures, ElementsAre(HasSubstr("got other values")));
}

TEST(SelfCheck, FindsAFactoryThatIsNotTraced) {
  auto library = library_on("aten", c10::DispatchKey::Functionalize);
  library.impl("ones", TORCH_FN(ones_as_full));
  EXPECT_THAT(check_capture().failures, ElementsAre(HasSubstr("`aten::ones`")));
}

TEST(SelfCheck, TellsTheErrorOfATraceThatFails) {
  auto library = library_on("aten", c10::DispatchKey::Functionalize);
  library.impl("exp", TORCH_FN(failing_exp));
  EXPECT_THAT(check_capture().failures, ElementsAre(HasSubstr("the error \"exp is broken\"")));
}

TEST(SelfCheck, NeitherReadsNorChangesTheThreadsModes) {
  at::NoGradGuard no_grad;
  c10::InferenceMode inference;
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const auto before = c10::impl::tls_local_dispatch_key_set();
  const auto generator = at::detail::getDefaultCPUGenerator().get_state();
  EXPECT_THAT(check_capture().failures, IsEmpty());
  const auto after = c10::impl::tls_local_dispatch_key_set();
  EXPECT_EQ(before.included_, after.included_);
  EXPECT_EQ(before.excluded_, after.excluded_);
  EXPECT_FALSE(at::GradMode::is_enabled());
  EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_TRUE(at::equal(generator, at::detail::getDefaultCPUGenerator().get_state()));
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

TEST(SelfCheck, RunsInsideATrace) {
  CaptureCheck check;
  const auto result = record({.arguments = {at::ones({2})},
                              .run =
                                  [&](const std::vector<at::Tensor>& in) {
                                    check = check_capture();
                                    return std::vector<at::Tensor>{in[0].exp()};
                                  },
                              .on_capture = {}});
  EXPECT_THAT(check.failures, IsEmpty());
  EXPECT_EQ(result.recording.ops.size(), 1u);
}

}  // namespace
}  // namespace foregrad
