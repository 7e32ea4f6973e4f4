#include "ops/op_table.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ops/schema.h"

namespace foregrad {
namespace {

std::string name_of(const OpRow& row) { return std::string(row.name) + "." + row.overload; }

TEST(OpTable, IsOrderedWithoutRepeats) {
  const auto key = [](const OpRow& row) {
    return std::pair(std::string_view(row.name), std::string_view(row.overload));
  };
  for (size_t i = 1; i < op_table().size(); ++i)
    EXPECT_LT(key(op_table()[i - 1]), key(op_table()[i])) << name_of(op_table()[i]);
}

TEST(OpTable, EveryRowNamesAnOperatorAndSaysSomething) {
  for (const OpRow& row : op_table()) {
    SCOPED_TRACE(name_of(row));
    EXPECT_TRUE(c10::Dispatcher::singleton().findSchema({row.name, row.overload}));
    EXPECT_EQ(find_op_row({row.name, row.overload}), &row);
    EXPECT_TRUE(row.gives_uninitialised || row.may_share_memory || row.has_hidden_write ||
                row.draws_random || row.cuts_history || row.checks_alignment || row.traced_as);
    if (!row.traced_as) continue;
    const auto other = c10::Dispatcher::singleton().findSchema({row.traced_as, row.overload});
    ASSERT_TRUE(other);
    const auto op = c10::Dispatcher::singleton().findSchema({row.name, row.overload}).value();
    EXPECT_EQ(other->schema().arguments(), op.schema().arguments());
  }
}

TEST(OpTable, RepeatsNothingThatTheSchemaSays) {
  for (const OpRow& row : op_table()) {
    SCOPED_TRACE(name_of(row));
    const auto op = c10::Dispatcher::singleton().findSchema({row.name, row.overload}).value();
    if (row.may_share_memory) {
      EXPECT_TRUE(view_aliases(op).empty());
      EXPECT_FALSE(memory_aliases(op).empty());
    }
    if (row.has_hidden_write) {
      EXPECT_FALSE(is_mutating(op));
      EXPECT_TRUE(has_effects(op));
    }
    if (row.draws_random) {
      EXPECT_FALSE(op.hasTag(at::Tag::nondeterministic_seeded));
      EXPECT_TRUE(is_random(op));
    }
    if (row.gives_uninitialised) {
      EXPECT_FALSE(has_effects(op));
    }
    if (row.cuts_history) {
      EXPECT_TRUE(is_view(op));
      EXPECT_TRUE(cuts_history(op));
    }
    EXPECT_TRUE(!is_pure(op) || row.may_share_memory || row.cuts_history || row.checks_alignment ||
                row.traced_as);
  }
}

TEST(OpTable, HasARowForEveryOperatorThatLeavesMemoryAsItWas) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.find("empty") == std::string::npos) continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || is_mutating(*op) || has_effects(*op)) continue;
    EXPECT_FALSE(is_pure(*op)) << name;
  }
}

TEST(OpTable, MissesOthers) {
  EXPECT_EQ(find_op_row({"aten::add", "Tensor"}), nullptr);
  EXPECT_EQ(find_op_row({"aten::empty", "out"}), nullptr);
  EXPECT_EQ(find_op_row({"zzz::zzz", ""}), nullptr);
}

}  // namespace
}  // namespace foregrad
