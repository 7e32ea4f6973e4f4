#include "support/expect_rules.h"

#include <gtest/gtest.h>

#include "support/operator_samples.h"

namespace foregrad::testing {

namespace {

constexpr int kSamples = 500;
constexpr int kCovered = 10;

void expect_rule_agrees(const ShapeRow& row) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(row.name, row.overload);
  const Inference rule = shape_rule(row.rule);
  Sampler sampler(1);
  int covered = 0;
  for (int i = 0; i < kSamples; ++i) {
    const auto arguments = draw_arguments(op, sampler);
    ASSERT_TRUE(arguments)
        << row.name << ": arguments can't be drawn: it wants an entry in operator_samples.cc";
    const ShapeFinding found = compare_shapes(op, *arguments, rule);
    covered += found.finding == Finding::Agrees;
    ASSERT_NE(found.finding, Finding::Differs) << found.text;
    ASSERT_NE(found.finding, Finding::CoversInvalid) << found.text;
    ASSERT_NE(found.finding, Finding::StricterThanIt) << found.text;
  }
  const int expected = row.rule == leave_to_real_kernel ? 0 : kCovered;
  EXPECT_GE(covered, expected) << row.name << "." << row.overload;
}

}  // namespace

Inference shape_rule(ShapeRule rule) {
  return [rule](torch::jit::Stack arguments) -> std::optional<torch::jit::Stack> {
    const Results results = rule(arguments);
    if (!results) return std::nullopt;
    return torch::jit::Stack(results->begin(), results->end());
  };
}

void expect_rules_agree(std::span<const ShapeRow> rows) {
  for (const ShapeRow& row : rows) expect_rule_agrees(row);
}

}  // namespace foregrad::testing
