#include "cli/fuzz/cpp_printer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "programs.h"

namespace foregrad::cli::fuzz {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(FuzzCppPrinter, PrintsTheFunction) {
  EXPECT_THAT(to_cpp_fragment(testing::small_program()),
              StartsWith(R"(Tensors function(const Tensors& x) {
  at::Tensor v0 = x[0].select(0, 1);
  at::Tensor v1 = v0.add_(-2);
  at::Tensor v2 = x[0].sum();
  at::Tensor v3 = x[0].t();
  return {v3, v2};
}
)"));
}

TEST(FuzzCppPrinter, PrintsBlocksListsShapesAndTypes) {
  Program program = testing::small_program();
  program.body.instructions = {
      testing::instruction("x[0].split(n[1], n[0])", {{.value = 0}}, {.numbers = {0, 1}}),
      testing::instruction("x[0].to(at::ScalarType(n[0]))", {{.value = 1, .part = 1}},
                           {.numbers = {static_cast<int64_t>(at::kDouble)}}),
      testing::instruction("x[0].view(shape)", {{.value = 0}}, {.shape = {3, 2}})};
  program.body.instructions[1].modes = {.recording = Recording::Off, .autocast = Autocast::On};
  program.body.outputs = {{.value = 1, .part = 0}};
  EXPECT_THAT(to_cpp_fragment(program), StartsWith(R"(Tensors function(const Tensors& x) {
  Tensors v0 = x[0].split(1, 0);
  at::Tensor v1;
  {
    const at::AutoGradMode mode(false);
    const Autocast autocast(true);
    v1 = v0[1].to(at::ScalarType::Double);
  }
  at::Tensor v2 = x[0].view(at::IntArrayRef({3, 2}));
  return {v0[0]};
}
)"));
}

TEST(FuzzCppPrinter, PrintsInputsAndTheCaller) {
  Program program = testing::small_program();
  program.inputs.bases[0].requires_grad = true;
  program.writes = {testing::instruction("x[0].zero_()", {{.value = 2}})};
  program.backwards = {{.kind = Backward::Kind::Grad, .outputs = {0, 1}}};
  const std::string text = to_cpp_fragment(program);
  EXPECT_THAT(text,
              HasSubstr("at::Tensor b0 = data(at::IntArrayRef({2, 3}), at::ScalarType::Float, "
                        "seed + 0).set_requires_grad(true);"));
  EXPECT_THAT(text, HasSubstr("w0 = prepared.arguments[0].zero_();"));
  EXPECT_THAT(text, HasSubstr("differentiate(outputs, {0, 1}, 'o', false, differentiable("));
  EXPECT_THAT(text, HasSubstr("other_inputs(call * 10 + more)"));
  program.calls = 1;
  EXPECT_THAT(to_cpp_fragment(program), Not(HasSubstr("other_inputs")));
}

TEST(FuzzCppPrinter, PrintsAWholeSource) {
  const std::string text = to_cpp(testing::small_program(), "One.\nTwo.");
  EXPECT_THAT(text, StartsWith("// One.\n// Two.\n#include <foregrad/compile.h>\n"));
  EXPECT_THAT(text, HasSubstr("int main()"));
}

}  // namespace
}  // namespace foregrad::cli::fuzz
