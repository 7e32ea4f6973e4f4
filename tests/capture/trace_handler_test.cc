#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capture/recorder.h"
#include "graph/refusal.h"

namespace foregrad {
namespace {

TEST(TraceHandler, RefusesADeviceThatIsNotTheCpu) {
  const RecordRequest request{
      .arguments = {at::ones({2})},
      .run = [](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
        return {in[0].to(at::Device(at::kCUDA, 0))};
      },
      .on_capture = {}};
  EXPECT_THROW(record(request), Refusal);
}

}  // namespace
}  // namespace foregrad
