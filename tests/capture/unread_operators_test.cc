#include "capture/unread_operators.h"

#include <gtest/gtest.h>

#include "graph/parser.h"
#include "graph/refusal.h"

namespace foregrad {
namespace {

TEST(UnreadOperators, ThatThrowAreRefused) {
  const Graph graph = parse_graph(R"(graph {
  input %0: bool[3]{1} = user(0)
  input %1: f32[3]{1} = user(1)
  %2: bool[3]{1} = aten::_softmax(%0, dim=0, half_to_float=false)
  %3: f32[3]{1} = aten::_softmax(%1, dim=0, half_to_float=false)
})");
  EXPECT_THROW(check_unread_operators(graph, {0}), Refusal);
  EXPECT_NO_THROW(check_unread_operators(graph, {1}));
}

}  // namespace
}  // namespace foregrad
