#include "capture/value_table.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

#include "capture/keys.h"
#include "capture/stand_in.h"
#include "graph/refusal.h"

namespace foregrad {
namespace {

class ValueTableTest : public testing::Test {
 protected:
  at::Tensor stand_in(bool requires_grad = false, bool is_leaf = true) {
    return make_stand_in(tracer_, {.sizes = {3}, .strides = {1}}, UserInput{}, requires_grad,
                         is_leaf);
  }

  Tracer tracer_{Tracer::Keep::ShapesOnly};
  Tracer::Scope tracing_{tracer_};
  TracingScope scope_{TracingScope::Level::Replaying};
  c10::OperatorHandle sin_ = c10::Dispatcher::singleton().findSchemaOrThrow("aten::sin", "");
  Recording recording_;
  ValueTable values_{recording_};
};

TEST_F(ValueTableTest, NumbersTensorsByIdentity) {
  const at::Tensor first = stand_in();
  const at::Tensor second = stand_in(true, false);
  EXPECT_EQ(values_.number(first).index, 0U);
  EXPECT_EQ(values_.number(second).index, 1U);
  EXPECT_EQ(values_.number(at::Tensor(first)).index, 0U);
  EXPECT_EQ(values_.find(stand_in()), std::nullopt);
  EXPECT_EQ(recording_.value_count, 2U);
  EXPECT_EQ(recording_.starts_with_history, (std::vector<bool>{false, true}));
  EXPECT_TRUE(values_.requires_grad(ValueId{1}));
}

TEST_F(ValueTableTest, TellsWhatHappenedWithoutAnOperator) {
  const at::Tensor tensor = stand_in();
  const ValueId value = values_.number(tensor);
  EXPECT_EQ(values_.unnoted_advance(value), 0U);
  torch::autograd::impl::bump_version(tensor);
  EXPECT_EQ(values_.unnoted_advance(value), 1U);
  values_.note_version(value);
  EXPECT_EQ(values_.unnoted_advance(value), 0U);
  EXPECT_FALSE(values_.has_other_node(value));
  const auto node = c10::make_intrusive<torch::autograd::Error>("never run");
  torch::autograd::impl::set_gradient_edge(at::Tensor(tensor), {node, 0});
  EXPECT_TRUE(values_.has_other_node(value));
  EXPECT_EQ(values_.find_by_node({node, 0}), std::nullopt);
  values_.note_node(value);
  EXPECT_FALSE(values_.has_other_node(value));
  EXPECT_EQ(values_.find_by_node({node, 0}), value);
}

TEST_F(ValueTableTest, NotesBasesOfViewsAndSharedCounters) {
  const at::Tensor base = stand_in();
  const at::Tensor view = base.slice(0, 0, 2);
  EXPECT_EQ(values_.number(view).index, 0U);  // and its base with it
  EXPECT_EQ(values_.number(base).index, 1U);
  EXPECT_EQ(recording_.view_bases.at(ValueId{0}), ValueId{1});
  EXPECT_EQ(values_.counter_of(base), ValueId{0});
  EXPECT_EQ(recording_.counters.at(ValueId{1}), ValueId{0});
}

TEST_F(ValueTableTest, TakesWhatItKnows) {
  const at::Tensor known = stand_in();
  const ValueId value = values_.number(known);
  EXPECT_EQ(std::get<ValueId>(values_.take(known, sin_)), value);
  EXPECT_EQ(std::get<ValueList>(values_.take(std::vector<at::Tensor>{known, {}}, sin_)),
            (ValueList{value, std::nullopt}));
  EXPECT_TRUE(std::get<c10::IValue>(values_.take(at::Tensor(), sin_)).isNone());
  EXPECT_EQ(std::get<c10::IValue>(values_.take(int64_t{3}, sin_)).toInt(), 3);
  EXPECT_THROW(values_.take(stand_in(), sin_), Refusal);
}

TEST_F(ValueTableTest, GivesNewValues) {
  EXPECT_EQ(std::get<ValueId>(values_.give(stand_in())).index, 0U);
  EXPECT_EQ(std::get<ValueList>(values_.give(std::vector<at::Tensor>{stand_in(), {}})),
            (ValueList{ValueId{1}, std::nullopt}));
}

}  // namespace
}  // namespace foregrad
