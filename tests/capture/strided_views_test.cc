#include "capture/strided_views.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capture/recorder.h"
#include "capture/replay.h"
#include "graph/interpreter.h"

namespace foregrad {
namespace {

/// Writes to a copy of the argument; traced, it gives what eager gives.
void expect_traced_as_eager(const std::function<void(const at::Tensor&)>& write,
                            const at::Tensor& x) {
  const auto run = [&](const std::vector<at::Tensor>& in) {
    const at::Tensor copy = in[0].clone();
    write(copy);
    return std::vector<at::Tensor>{copy * 1};
  };
  const auto recorded = record({.arguments = {x}, .run = run, .on_capture = {}});
  ViewAndMutationMeta meta;
  meta.inputs.push_back({.type = type_of(x)});
  meta.outputs.push_back({.origin = NewTensor{}, .type = type_of(x)});
  const auto joint = trace_joint(recorded.recording, meta, {});
  EXPECT_TRUE(at::equal(interpret(joint.graph, {x}).at(0), run({x}).at(0)));
}

TEST(StridedViews, AreWrittenThroughFurtherViews) {
  expect_traced_as_eager(
      [](const at::Tensor& y) {
        y.as_strided({2, 2}, {3, 1}, 1).select(0, 1).fill_(9);
      },
      at::arange(8, at::kFloat));
}

TEST(StridedViews, OfAViewReachElementsOutsideOfIt) {
  expect_traced_as_eager(
      [](const at::Tensor& y) { y.slice(0, 4, 6).as_strided({3}, {1}, 0).fill_(9); },
      at::arange(8, at::kFloat));
}

TEST(StridedViews, OutsideOfTheStorageAreAnError) {
  EXPECT_THROW(
      expect_traced_as_eager([](const at::Tensor& y) { y.as_strided({9}, {1}, 0).fill_(9); },
                             at::arange(8, at::kFloat)),
      c10::Error);
}

TEST(StridedViews, UnfoldKeepsWhatLiesBetweenTheWindows) {
  expect_traced_as_eager([](const at::Tensor& y) { y.unfold(1, 1, 5).mul_(2); },
                         at::arange(12, at::kFloat).view({2, 6}));
}

}  // namespace
}  // namespace foregrad
