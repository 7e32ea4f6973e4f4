#include <gtest/gtest.h>
#include <torch/library.h>

#include "capture/keys.h"
#include "capture/registration.h"

namespace foregrad {
namespace {

TEST(Registration, CoversEveryOperatorThatIsNotCompositeOrHasItsOwnKernel) {
  auto& dispatcher = c10::Dispatcher::singleton();
  const size_t registered = registered_operators();
  size_t expected = 0;
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op) continue;
    if (op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
        !op->hasKernelForDispatchKey(c10::DispatchKey::CPU))
      continue;
    ++expected;
    EXPECT_TRUE(op->hasKernelForDispatchKey(kTraceKey)) << name;
  }
  EXPECT_GT(expected, 1000u);
  EXPECT_GE(registered, expected);
}

TEST(Registration, OperatorsDefinedLaterGetTheHandler) {
  torch::Library library(torch::Library::DEF, "foregrad_registration_test", std::nullopt, __FILE__,
                         __LINE__);
  library.def("twice(Tensor x) -> Tensor");
  const auto op =
      c10::Dispatcher::singleton().findSchema({"foregrad_registration_test::twice", ""});
  ASSERT_TRUE(op);
  registered_operators();
  EXPECT_TRUE(op->hasKernelForDispatchKey(kTraceKey));
}

}  // namespace
}  // namespace foregrad
