#include "capture/in_place_writes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "capture/keys.h"
#include "capture/recorder.h"
#include "capture/replay.h"
#include "capture/stand_in.h"
#include "graph/interpreter.h"
#include "graph/printer.h"

namespace foregrad {
namespace {

using Tensors = std::vector<at::Tensor>;

struct Traced {
  Graph graph;
  at::Tensor result;
};

/// Writes to a copy of the argument, traced and run again.
Traced traced(const std::function<void(const at::Tensor&)>& write, const at::Tensor& x) {
  const auto run = [&](const Tensors& in) {
    const at::Tensor copy = in[0].clone();
    write(copy);
    return Tensors{copy * 1};
  };
  const auto recorded = record({.arguments = {x}, .run = run, .on_capture = {}});
  ViewAndMutationMeta meta;
  meta.inputs.push_back({.type = type_of(x)});
  meta.outputs.push_back({.origin = NewTensor{}, .type = type_of(x)});
  Graph graph = trace_joint(recorded.recording, meta, {}).graph;
  at::manual_seed(1);
  at::Tensor result = interpret(graph, {x}).at(0);
  return {std::move(graph), std::move(result)};
}

void expect_write_as_eager(const std::function<void(const at::Tensor&)>& write, const at::Tensor& x,
                           bool takes_variant = true) {
  const Traced got = traced(write, x);
  const at::Tensor eager = x.clone();
  at::manual_seed(1);
  write(eager);
  EXPECT_TRUE(at::equal(got.result, eager)) << got.result << eager;
  const bool has_variant = print_graph(got.graph).find("foregrad_memory::") != std::string::npos;
  EXPECT_EQ(has_variant, takes_variant) << print_graph(got.graph);
}

TEST(InPlaceWrites, WhereElementsShareMemory) {
  const at::Tensor x = at::arange(12, at::kFloat);
  expect_write_as_eager([](const at::Tensor& y) { y.as_strided({3, 3}, {2, 1}).mul_(2); }, x);
  expect_write_as_eager(
      [](const at::Tensor& y) {
        y.as_strided({3, 3}, {2, 1}).select(0, 1).mul_(2);
      },
      x);
  expect_write_as_eager(
      [](const at::Tensor& y) {
        y.as_strided({2, 3}, {4, 1}).copy_(y.as_strided({2, 3}, {4, 1}, 2));
      },
      x);
  expect_write_as_eager(
      [](const at::Tensor& y) {
        y.view({3, 4}).expand({2, 3, 4})[1].add_(1);
      },
      x);
}

TEST(InPlaceWrites, OfRandomNumbersFollowTheMemory) {
  const at::Tensor x = at::zeros({20, 20});
  expect_write_as_eager([](const at::Tensor& y) { y.slice(1, 0, 9).normal_(); }, x);
  expect_write_as_eager([](const at::Tensor& y) { y.t().bernoulli_(0.5); }, x);
  expect_write_as_eager([](const at::Tensor& y) { y.uniform_(); }, x, false);
}

TEST(InPlaceWrites, ThatAreSafeStayFunctional) {
  const at::Tensor x = at::arange(12, at::kFloat).view({3, 4});
  expect_write_as_eager([](const at::Tensor& y) { y.t().mul_(y.t()); }, x, false);
  expect_write_as_eager([](const at::Tensor& y) { y[0].copy_(y[1]); }, x, false);
  expect_write_as_eager([](const at::Tensor& y) { y.slice(1, 1, 3).add_(1); }, x, false);
}

TEST(InPlaceWrites, KnowViewsOfOverlappingViews) {
  Tracer tracer(Tracer::Keep::ShapesOnly);
  Tracer::Scope tracing(tracer);
  TracingScope scope(TracingScope::Level::Replaying);
  const at::Tensor base =
      make_stand_in(tracer, {.sizes = {6}, .strides = {1}}, UserInput{}, false, true);
  EXPECT_FALSE(lies_in_overlap(base));
  EXPECT_FALSE(lies_in_overlap(base.view({2, 3}).select(0, 1)));
  EXPECT_TRUE(lies_in_overlap(base.unfold(0, 3, 1)));
  EXPECT_TRUE(lies_in_overlap(base.unfold(0, 3, 1).select(0, 1)));
}

}  // namespace
}  // namespace foregrad
