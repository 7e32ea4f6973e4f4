#include "capture/operator_checks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capture/recorder.h"
#include "graph/refusal.h"

namespace foregrad {
namespace {

using Tensors = std::vector<at::Tensor>;

Recording recorded(const std::function<Tensors(const Tensors&)>& run) {
  return record({.arguments = {at::ones({3, 3})}, .run = run, .on_capture = {}}).recording;
}

TEST(OperatorChecks, AWriteToAnExpandedTensorIsItsKernelsError) {
  try {
    recorded([](const Tensors& in) -> Tensors {
      in[0].select(0, 0).expand({4, 3}).add_(1);
      return {};
    });
    ADD_FAILURE() << "no error";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("single memory location"), std::string::npos);
  }
}

TEST(OperatorChecks, AnOverlapInAListThatIsWrittenIsRefused) {
  EXPECT_THROW(recorded([](const Tensors& in) -> Tensors {
                 at::_foreach_add_({in[0].as_strided({3, 2}, {2, 2})}, 1);
                 return {};
               }),
               Refusal);
  EXPECT_NO_THROW(recorded([](const Tensors& in) -> Tensors {
    at::_foreach_add_({in[0].select(0, 0), in[0].select(0, 1)}, 1);
    in[0].as_strided({3, 2}, {2, 2}).fill_(1);
    return {};
  }));
}

TEST(OperatorChecks, FactoriesHaveTheirVersions) {
  const auto run = [](const Tensors&) -> Tensors {
    return {at::ones({2}), at::empty({2}), at::rand({2}), at::arange(3)};
  };
  const auto state = at::detail::getDefaultCPUGenerator().get_state();
  const Recording recording = recorded(run);
  EXPECT_TRUE(at::equal(state, at::detail::getDefaultCPUGenerator().get_state()));
  const Tensors eager = run({});
  for (size_t i = 0; i < eager.size(); ++i)
    EXPECT_EQ(recording.outputs[i].seen.version, eager[i]._version()) << i;
}

}  // namespace
}  // namespace foregrad
