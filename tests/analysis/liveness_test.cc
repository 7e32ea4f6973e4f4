#include "analysis/liveness.h"

#include <gtest/gtest.h>

#include "graph/parser.h"

namespace foregrad {
namespace {

constexpr std::string_view kGraph = R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %1: f32[2,2]{2,1} = aten::neg(%0)
  [%2: f32[1,2]{2,1}, %3: f32[1,2]{2,1}+2] = aten::split.Tensor(%1, split_size=1)
  %4: f32[2]{1}+2 = aten::_unsafe_view(%3, size=[2])
  %5: f32[2]{1} = aten::relu(%4)
  %6: f32[2,2]{1,2} = aten::t(%0)
  %7: f32[2,2]{1,2} = aten::exp(%6)
  %8: f32[4]{1} = aten::reshape(%7, shape=[4])
  %9: f32[2]{1} = aten::neg(%5) overwrites 0
  %10: f32[2]{1} = aten::sigmoid(%9)
  output %8 = output(0)
})";

TEST(AliasClasses, FollowViewsOfAllKinds) {
  const AliasClasses classes(parse_graph(kGraph));
  for (const uint32_t view : {2u, 3u, 4u}) EXPECT_EQ(classes.of({view}), ValueId{1}) << view;
  EXPECT_TRUE(classes.may_alias({6}, {0}));
  EXPECT_TRUE(classes.may_alias({8}, {7}));
  EXPECT_TRUE(classes.may_alias({9}, {5}));
  EXPECT_FALSE(classes.may_alias({1}, {0}));
  EXPECT_FALSE(classes.may_alias({5}, {4}));
  EXPECT_FALSE(classes.may_alias({7}, {6}));
  EXPECT_FALSE(classes.may_alias({10}, {9}));
}

TEST(AliasClasses, JoinClassesThatMeet) {
  const AliasClasses classes(parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = user(1)
  input %2: f32[2]{1} = user(2)
  [%3: f32[2]{1}, %4: f32[2]{1}] = _c10d_functional::wait_tensors([%2, %1])
  [%5: f32[2]{1}, %6: f32[2]{1}] = _c10d_functional::wait_tensors([%4, %0])
})"));
  for (uint32_t i = 0; i < 7; ++i) EXPECT_EQ(classes.of({i}), ValueId{0}) << i;
}

TEST(Liveness, KnowsLastReads) {
  const Liveness liveness(parse_graph(kGraph));
  EXPECT_EQ(liveness.last_read({1}), NodeId{1});
  EXPECT_EQ(liveness.last_read({2}), std::nullopt);
  EXPECT_EQ(liveness.last_read({4}), NodeId{3});
  EXPECT_EQ(liveness.last_read({8}), std::nullopt);
  for (const uint32_t value : {1u, 2u, 3u, 4u})
    EXPECT_EQ(liveness.last_use_of_memory({value}), NodeId{3}) << value;
  EXPECT_EQ(liveness.last_use_of_memory({5}), NodeId{8});
  EXPECT_EQ(liveness.last_use_of_memory({0}), NodeId{5});
  EXPECT_EQ(liveness.last_use_of_memory({10}), NodeId{8});
}

TEST(Liveness, KnowsWhatTheCallerSees) {
  const Liveness liveness(parse_graph(kGraph));
  for (const uint32_t value : {0u, 6u, 7u, 8u})
    EXPECT_TRUE(liveness.is_shared_outside({value})) << value;
  for (const uint32_t value : {1u, 2u, 4u, 5u, 9u, 10u})
    EXPECT_FALSE(liveness.is_shared_outside({value})) << value;
}

TEST(SavedInOutputs, FindsWhatTheCallerMayWrite) {
  const Graph forward = parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::relu(%0)
  %2: f32[2,1]{1,1} = aten::unsqueeze(%1, dim=1)
  %3: f32[2]{1} = aten::exp(%0)
  %4: f32[2]{1} = aten::neg(%3)
  %5: f32[1,2]{2,1} = aten::unsqueeze(%4, dim=0)
  output %2 = output(0)
  output %3 = output(1)
  output %4 = intermediate_base(0)
  output %0 = saved(%0)
  output %1 = saved(%1)
  output %3 = saved(%3)
  output %5 = saved(%5)
})");
  const std::map<ValueId, size_t> expected = {{ValueId{1}, 0}, {ValueId{5}, 2}};
  EXPECT_EQ(saved_in_outputs(forward), expected);
}

}  // namespace
}  // namespace foregrad
