// What a signature says, and that a graph stands by itself, is held by
// tests/behaviours/export_test.cc.
#include "foregrad/export.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "graph/parser.h"
#include "graph/printer.h"

namespace foregrad {
namespace {

TEST(Export, IsWrittenWithItsSignature) {
  const Exported exported =
      aot_export_joint([](const at::Tensor& x) { return x.exp(); }, at::ones({2}).requires_grad_());
  const std::string text = to_text(exported);
  EXPECT_EQ(text.substr(0, text.find("graph {")),
            "input argument argument_0\ninput tangent output(0)\n"
            "output result result_0\noutput gradient argument_0\n");
  const Graph parsed = parse_graph(text.substr(text.find("graph {")));
  EXPECT_EQ(print_graph(parsed), print_graph(exported.graph));
}

TEST(Export, OfInferenceTakesNoGradients) {
  torch::nn::Linear linear(3, 2);
  const Exported exported = aot_export_module(linear, {}, at::ones({1, 3}));
  ASSERT_EQ(exported.outputs.size(), 1U);
  EXPECT_EQ(exported.outputs[0], (ExportedOutput{ExportedOutput::Kind::Result, "result_0"}));
  EXPECT_EQ(exported.inputs.size(), 3U);
}

}  // namespace
}  // namespace foregrad
