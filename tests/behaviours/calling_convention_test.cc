// What goes in and comes out of a call.
#include <gmock/gmock.h>

#include "behaviours/graph_text.h"
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// One operator is recorded once, as one node, and serves calls with other data.
TEST(Behaviours, B001_OneOperatorOnFreshData) {
  const Report report = expect_as_eager([](const Tensors& in) -> Tensors { return {in[0].sin()}; },
                                        start_of(Kind::Plain, {2, 3}));
  ASSERT_EQ(report.specialisations.size(), 1u);
  EXPECT_EQ(report.specialisations[0].calls, 3u);
  EXPECT_THAT(operators(report.specialisations[0].joint_graph), ElementsAre("sin"));
}

// Integers and absent tensors stand next to a tensor, with and without grad.
TEST(Behaviours, B004_IntegersAndAbsentTensorsBesideATensor) {
  for (const Kind kind : {Kind::Plain, Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    const auto fn = [](const at::Tensor& x, int64_t times, const std::optional<at::Tensor>& bias,
                       const at::Tensor& absent) -> at::Tensor {
      auto y = x * times;
      if (bias) y = y + *bias;
      if (absent.defined()) y = y - absent;
      return y;
    };
    expect_as_eager({fn,
                     [](const auto& f, const Tensors& in) -> Tensors {
                       return {f(in[0], 3, std::optional<at::Tensor>(), at::Tensor())};
                     }},
                    start_of(kind, {3}));
  }
}

// A function may give back a bare tensor; one input is differentiated, the other is plain.
TEST(Behaviours, B005_ABareTensorAsResult) {
  const auto fn = [](const at::Tensor& x, const at::Tensor& y) -> at::Tensor { return x * y + y; };
  expect_as_eager(
      {fn, [](const auto& f, const Tensors& in) -> Tensors { return {f(in[0], in[1])}; }},
      start_of({Kind::Leaf, Kind::Plain}, {3}));
}

// A function may give back a tuple.
TEST(Behaviours, B006_ATupleOfTwoResults) {
  const auto fn = [](const at::Tensor& x,
                     const at::Tensor& y) -> std::tuple<at::Tensor, at::Tensor> {
    return {x.sin(), x + y};
  };
  expect_as_eager({fn,
                   [](const auto& f, const Tensors& in) -> Tensors {
                     auto [first, second] = f(in[0], in[1]);
                     return {first, second};
                   }},
                  start_of({Kind::Leaf, Kind::Plain}, {3}));
}

// Tensors, an absent tensor and an integer come together, in both grad modes.
TEST(Behaviours, B007_TensorsAbsentTensorsAndIntegersInBothGradModes) {
  const auto fn = [](const at::Tensor& x, const std::optional<at::Tensor>& absent,
                     const at::Tensor& y,
                     int64_t dim) -> std::tuple<at::Tensor, std::optional<at::Tensor>, int64_t> {
    return {at::cat({x, y}, dim) * 2, absent, dim + 1};
  };
  const auto call = [](const auto& f, const Tensors& in) -> Tensors {
    auto [tensor, absent, number] = f(in[0], std::optional<at::Tensor>(), in[1], 1);
    EXPECT_FALSE(absent.has_value());
    EXPECT_EQ(number, 2);
    return {tensor};
  };
  for (const bool grad_mode : {true, false}) {
    SCOPED_TRACE(grad_mode);
    for (const Kind kind : {Kind::Plain, Kind::Leaf}) {
      SCOPED_TRACE(name_of(kind));
      expect_as_eager({fn, call},
                      {{.make = start_of({kind, kind}, {2, 3}), .grad_mode = grad_mode}});
    }
  }
}

struct Pair {
  at::Tensor first;
  at::Tensor second;
  auto members() { return std::tie(first, second); }
};

// Structs, tuples and maps carry tensors in and out; one tensor may stand under two keys.
TEST(Behaviours, B008_StructsTuplesAndMapsOfTensors) {
  const auto of_struct = [](const Pair& in) -> Pair {
    return {in.first * in.second, in.first + 1};
  };
  expect_as_eager({of_struct,
                   [](const auto& f, const Tensors& in) -> Tensors {
                     const Pair out = f(Pair{in[0], in[1]});
                     return {out.first, out.second};
                   }},
                  start_of({Kind::Leaf, Kind::Plain}, {3}));
  const auto of_tuple = [](const std::tuple<at::Tensor, at::Tensor>& in) {
    return std::pair(std::get<0>(in) * 2, std::get<1>(in) * std::get<0>(in));
  };
  expect_as_eager({of_tuple,
                   [](const auto& f, const Tensors& in) -> Tensors {
                     auto out = f(std::tuple(in[0], in[1]));
                     return {out.first, out.second};
                   }},
                  start_of({Kind::Leaf, Kind::Leaf}, {3}));
  using Map = std::map<std::string, at::Tensor>;
  const auto of_map = [](const Map& in) -> Map {
    auto product = in.at("a") * in.at("b");
    return {{"once", product}, {"twice", product}, {"sum", in.at("a") + in.at("again")}};
  };
  expect_as_eager({of_map,
                   [](const auto& f, const Tensors& in) -> Tensors {
                     Map out = f(Map{{"a", in[0]}, {"again", in[0]}, {"b", in[1]}});
                     return {out.at("once"), out.at("twice"), out.at("sum")};
                   }},
                  start_of({Kind::Leaf, Kind::Leaf}, {3}));
}

// A linear layer becomes its parts. What is saved is its operands; without grad nothing is.
TEST(Behaviours, B009_ALinearLayerSavesOperandsOnlyToTrain) {
  const Program linear = [](const Tensors& in) -> Tensors {
    return {at::linear(in[0], in[1], in[2])};
  };
  const MakeStart make = []() -> Start { return {{leaf({2, 3}), leaf({4, 3}), leaf({4})}}; };
  const auto training = expect_as_eager(linear, make).specialisations;
  ASSERT_EQ(training.size(), 1u);
  EXPECT_THAT(operators(training[0].forward_graph), ElementsAre("t", "addmm"));
  const auto saved = lines_with(training[0].backward_graph, "= saved(");
  EXPECT_EQ(saved.size(), 2u);  // the input and the weight, the latter as it is or transposed
  const auto inference =
      expect_as_eager(linear, {{.make = make, .grad_mode = false}}).specialisations;
  ASSERT_EQ(inference.size(), 1u);
  EXPECT_THAT(operators(inference[0].forward_graph), ElementsAre("t", "addmm"));
  EXPECT_THAT(inference[0].forward_graph, Not(HasSubstr("saved(")));
  EXPECT_EQ(inference[0].saved_bytes, 0u);
  EXPECT_THAT(operators(inference[0].backward_graph), IsEmpty());
}

// A stand-in that outlives its trace is an error wherever it is used, not a constant.
TEST(Behaviours, B010_AStandInThatOutlivesItsTraceIsAnError) {
  at::Tensor stray;
  auto leaks = compile([&](const at::Tensor& x) -> at::Tensor {
    stray = x * 2;
    return stray + 1;
  });
  leaks(at::ones({3}));
  const auto uses = [&](const at::Tensor& x) -> at::Tensor { return x + stray; };
  auto compiled = compile(uses);
  EXPECT_THAT([&] { compiled(at::ones({3})); },
              ::testing::ThrowsMessage<c10::Error>(HasSubstr("stood for a value")));
  auto refusing = compile(uses, {.policy = Policy::Refuse});
  EXPECT_THROW(refusing(at::ones({3})), c10::Error);
}

// Each size of the arguments has a compiled form of its own, kept for when it comes again.
TEST(Behaviours, B110_SeveralSizesOneAfterTheOther) {
  std::vector<Scene> scenes;
  for (const int64_t size : {2, 5, 1, 2, 7, 5})
    scenes.push_back({.make = start_of({Kind::Leaf, Kind::Tracked}, {size, 3})});
  const Report report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return {in[0].mm(in[1].t()), in[0].sum(0)};
      },
      scenes);
  EXPECT_EQ(report.specialisations.size(), 4u);
}

}  // namespace
}  // namespace foregrad::testing
