// Random numbers
#include <gmock/gmock.h>
#include <torch/library.h>

#include "behaviours/callers.h"
#include "behaviours/graph_text.h"
#include "foregrad/aot.h"
#include "graph/printer.h"

namespace foregrad::testing {
namespace {

/// Numbers from a seed and a place in its stream, which `state` holds: [seed, offset]. Each call
/// advances the offset by how many it gives.
at::Tensor draw(const at::Tensor& like, const at::Tensor& state) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  at::Tensor numbers = at::empty_like(like, at::MemoryFormat::Contiguous);
  auto* place = state.data_ptr<int64_t>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    const uint64_t mixed = (static_cast<uint64_t>(place[0]) * 0x9E3779B97F4A7C15U) ^
                           (static_cast<uint64_t>(place[1] + i) * 0xBF58476D1CE4E5B9U);
    numbers.data_ptr<float>()[i] = static_cast<float>(mixed >> 40U) / (1U << 24U);
  }
  place[1] += numbers.numel();
  return numbers;
}

TORCH_LIBRARY(behaviours_random, library) {
  library.def("draw(Tensor like, Tensor(a!) state) -> Tensor", torch::dispatch(at::kCPU, &draw));
}

at::Tensor drawn(const at::Tensor& like, const at::Tensor& state) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("behaviours_random::draw", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  return op.call(like, state);
}

MakeStart with_state(Kind kind) {
  return [=] {
    Start start;
    start.arguments = {make(start, kind, {2, 3}), at::tensor(std::vector<int64_t>{5, 0})};
    return start;
  };
}

// Gradients through an operator with a generator that counts, whose state is an argument.
TEST(Behaviours, B112_GradientsThroughACountingGenerator) {
  const Program program = [](const Tensors& in) -> Tensors {
    const at::Tensor mask = drawn(in[0].detach(), in[1]).gt(0.5);
    return {(in[0] * mask).sin()};
  };
  for (const Kind kind : {Kind::Leaf, Kind::Tracked}) expect_as_eager(program, with_state(kind));
}

// Random results and others together.
TEST(Behaviours, B123_RandomAndOtherResults) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return {at::dropout(in[0], 0.5, true), in[0].cos(), at::rand_like(in[0]) + in[0]};
      },
      start_of(Kind::Leaf, {4, 5}));
}

// Two calls of a counting generator give different numbers, and advance its offset twice.
TEST(Behaviours, B124_ACountingGeneratorAdvances) {
  const Program program = [](const Tensors& in) -> Tensors {
    return {drawn(in[0], in[1]), drawn(in[0], in[1])};
  };
  expect_as_eager(program, with_state(Kind::Plain), [](const Called& called) {
    EXPECT_FALSE(at::equal(called.results[0], called.results[1]));
    EXPECT_EQ(called.arguments[1][1].item<int64_t>(), 12);
  });
}

// The new offset is written back into the state; the caller gets no result more.
TEST(Behaviours, B125_TheOffsetIsWrittenBack) {
  const auto draw_one = [](const at::Tensor& x, const at::Tensor& state) {
    return drawn(x, state);
  };
  const Graph graph = make_graph(draw_one, at::ones({3}), at::tensor(std::vector<int64_t>{5, 0}));
  EXPECT_EQ(output_roles(print_graph(graph)),
            (std::vector<std::string>{"mutated(1)", "output(0)"}));
}

// A random operator in a training step: a gradient, and eager's mask.
TEST(Behaviours, B126_DropoutInATrainingStep) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return {at::dropout(in[0].matmul(in[1]).relu(), 0.5, true).square().mean()};
      },
      start_of({Kind::Leaf, Kind::Leaf}, {6, 6}));
}

// Random fills, functional and in place.
TEST(Behaviours, B127_NoiseInPlaceAndNot) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[1].normal_();
        return {in[0] + in[1], in[0] + at::randn_like(in[0]), at::bernoulli(in[0].sigmoid())};
      },
      start_of({Kind::Leaf, Kind::Plain}, {3, 3}));
}

// The noise that `rrelu_with_noise` writes into a buffer is there for the caller; so for its
// variant in place.
TEST(Behaviours, B128_ANoiseBufferIsWritten) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        at::Tensor noise = in[1];
        return {at::rrelu_with_noise(in[0] - 1, noise, 0.1, 0.4, true)};
      },
      start_of({Kind::Leaf, Kind::Plain}, {4, 4}));
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        at::Tensor noise = in[1];
        at::Tensor x = in[0] - 1;
        return {at::rrelu_with_noise_(x, noise, 0.1, 0.4, true)};
      },
      start_of({Kind::Leaf, Kind::Plain}, {4, 4}));
}

}  // namespace
}  // namespace foregrad::testing
