#include "cli/fuzz/interpreter.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "programs.h"

namespace foregrad::cli::fuzz {
namespace {

TEST(FuzzInterpreter, RunsABody) {
  const Program program = testing::small_program();
  const at::Tensor x = at::zeros({2, 3});
  const Tensors outputs = run(program.body, {x});
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_TRUE(outputs[0].is_alias_of(x));
  EXPECT_EQ(outputs[1].item<float>(), -6);
}

TEST(FuzzInterpreter, TurnsRecordingOffAndOn) {
  Instruction sine = testing::instruction("x[0].sin()", {{.value = 0}});
  const at::Tensor x = at::ones({2}).requires_grad_();
  for (const auto& [recording, requires_grad] :
       {std::pair{Recording::AsBefore, true}, {Recording::Off, false}, {Recording::On, true}}) {
    sine.modes.recording = recording;
    Values values{{x}};
    run(sine, values);
    EXPECT_EQ(value_of(values, {.value = 1}).requires_grad(), requires_grad);
  }
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST(FuzzInterpreter, TurnsAutocastOffAndOn) {
  Instruction product = testing::instruction("x[0].matmul(x[1])", {{.value = 0}, {.value = 0}});
  const at::Tensor x = at::ones({2, 2});
  const AutocastScope around(true);
  for (const auto& [autocast, type] : {std::pair{Autocast::AsBefore, at::kBFloat16},
                                       {Autocast::Off, at::kFloat},
                                       {Autocast::On, at::kBFloat16}}) {
    product.modes.autocast = autocast;
    Values values{{x}};
    run(product, values);
    EXPECT_EQ(value_of(values, {.value = 1}).scalar_type(), type);
  }
}

TEST(FuzzInterpreter, MissingPartsAreErrors) {
  const Values values{{at::ones({1})}};
  EXPECT_THROW(value_of(values, {.value = 0, .part = 1}), c10::Error);
  EXPECT_THROW(value_of(values, {.value = 1}), c10::Error);
}

TEST(FuzzInterpreter, EqualSeedsGiveEqualBases) {
  for (const at::ScalarType type : {at::kFloat, at::kLong, at::kBool, at::kComplexFloat}) {
    const Base base{.type = type, .sizes = {2, 3}, .requires_grad = type == at::kFloat};
    const at::Tensor made = make_base(base, 4);
    EXPECT_EQ(made.scalar_type(), type);
    EXPECT_EQ(made.requires_grad(), base.requires_grad);
    EXPECT_TRUE(at::equal(made, make_base(base, 4)));
    EXPECT_FALSE(at::equal(made, make_base(base, 5)));
  }
}

TEST(FuzzInterpreter, PreparesWhatTheCallerSees) {
  Inputs inputs = testing::one_input();
  inputs.setup = {
      testing::instruction("x[0].split(n[1], n[0])", {{.value = 0}}, {.numbers = {1, 2}})};
  inputs.arguments = {{.value = 1, .part = 1}, {.value = 0}};
  const Prepared prepared = prepare(inputs, 0);
  EXPECT_EQ(prepared.visible.size(), 3U);
  EXPECT_EQ(prepared.arguments[0].sizes(), at::IntArrayRef({2, 1}));
  EXPECT_TRUE(prepared.arguments[0].is_alias_of(prepared.arguments[1]));
}

}  // namespace
}  // namespace foregrad::cli::fuzz
