#include "runtime/plan.h"

#include <ATen/ATen.h>
#include <c10/util/intrusive_ptr.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <string_view>
#include <thread>
#include <vector>

#include "graph/interpreter.h"
#include "graph/parser.h"
#include "graph/verifier.h"

namespace foregrad {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Tensors = std::vector<at::Tensor>;
using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

Graph verified(std::string_view text) {
  Graph graph = parse_graph(text);
  verify(graph, "test");
  return graph;
}

at::Tensor ramp(std::initializer_list<int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::linspace(-1, 2, count, at::kFloat).reshape(sizes);
}

WeakTensor watch(const at::Tensor& tensor) { return WeakTensor(tensor.getIntrusivePtr()); }

// Runs twice: a plan must not keep anything of a run.
void expect_as_interpreted(std::string_view text, const Tensors& inputs) {
  const Graph graph = verified(text);
  const Plan plan(graph);
  Tensors before;
  for (const at::Tensor& input : inputs) before.push_back(input.clone());
  for (int run = 0; run < 2; ++run) {
    at::manual_seed(5);
    const Tensors expected = interpret(graph, inputs);
    at::manual_seed(5);
    const Tensors got = plan.run(inputs);
    ASSERT_EQ(got.size(), expected.size()) << text;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].defined(), expected[i].defined()) << "output " << i << " of " << text;
      if (!got[i].defined()) continue;
      EXPECT_TRUE(at::equal(got[i], expected[i])) << "output " << i << " of " << text;
      EXPECT_EQ(got[i].strides(), expected[i].strides()) << "output " << i << " of " << text;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(at::equal(inputs[i], before[i])) << "input " << i << " of " << text;
    }
  }
}

// ---- values

TEST(Plan, RunsNodesInOrder) {
  expect_as_interpreted(R"(graph {
  input %0: f32[2,3]{3,1} = user(0)
  input %1: f32[2,3]{3,1} = user(1)
  %2: f32[2,3]{3,1} = aten::mul.Tensor(%0, %1)
  %3: f32[2,3]{3,1} = aten::add.Tensor(%2, wrapped(f64 0.5), alpha=2)
  %4: f32[2]{1} = aten::sum.dim_IntList(%3, dim=[1])
  %5: f32[3,2]{1,3} = aten::t(%2)
  output %4 = output(0)
  output %5 = output(1)
})",
                        {ramp({2, 3}), ramp({2, 3}).mul(3)});
}

TEST(Plan, RunsTheEmptyGraph) { EXPECT_TRUE(Plan(parse_graph("graph {\n}")).run({}).empty()); }

TEST(Plan, TakesSeveralResultsAndDropsUnused) {
  expect_as_interpreted(R"(graph {
  input %0: f32[2,3]{3,1} = user(0)
  %1: f32[2]{1}, %2: i64[2]{1} = aten::max.dim(%0, dim=1)
  undefined, %3: i64[2]{1} = aten::min.dim(%0, dim=1)
  %4: f32[2,3]{3,1} = aten::sin(%0)
  output %3 = output(0)
  output %1 = output(1)
})",
                        {ramp({2, 3})});
}

TEST(Plan, TakesAndGivesLists) {
  expect_as_interpreted(R"(graph {
  input %0: f32[3,2]{2,1} = user(0)
  [%1: f32[1,2]{2,1}, undefined, %2: f32[1,2]{2,1}+4] = aten::split.Tensor(%0, split_size=1)
  %3: f32[3,2]{2,1} = aten::cat([%2, %1, %2])
  [%4: f32[3,2]{2,1}, %5: f32[3,2]{2,1}] = aten::_foreach_add.ScalarList([%0, %3], scalars=[1, 0.5])
  output %3 = output(0)
  output %5 = output(1)
})",
                        {ramp({3, 2})});
}

TEST(Plan, ListsMayHaveAbsentEntries) {
  expect_as_interpreted(R"(graph {
  input %0: f32[2,3]{3,1} = user(0)
  input %1: i64[2]{1} = user(1)
  %2: f32[2,2]{2,1} = aten::index.Tensor(%0, [none, %1])
  %3: f32[2,3]{3,1} = aten::index_put(%0, [%1], %0)
  output %2 = output(0)
  output %3 = output(1)
})",
                        {ramp({2, 3}), at::tensor({1, 0}, at::kLong)});
}

TEST(Plan, PassesAbsentTensorsAndTakesUndefinedOnes) {
  expect_as_interpreted(R"(graph {
  input %0: f32[1,2,4,4]{32,16,4,1} = user(0)
  input %1: f32[3,2,3,3]{18,9,3,1} = lifted(1)
  %2: f32[1,3,2,2]{12,4,2,1} = aten::convolution(%0, %1, bias=none, stride=[1, 1], padding=[0, 0], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1)
  undefined, %3: f32[3,2,3,3]{18,9,3,1}, undefined = aten::convolution_backward(%2, %0, %1, bias_sizes=none, stride=[1, 1], padding=[0, 0], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1, output_mask=[false, true, false])
  output undefined = grad(0)
  output %3 = grad(1)
})",
                        {ramp({1, 2, 4, 4}), ramp({3, 2, 3, 3})});
}

TEST(Plan, PassesAnUndefinedTensor) {
  const Plan plan(verified(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = test_plan::second(none, %0)
  output %1 = output(0)
})"));
  EXPECT_TRUE(at::equal(plan.run({ramp({2})})[0], ramp({2})));
}

TEST(Plan, DrawsTheSameRandomNumbers) {
  expect_as_interpreted(R"(graph {
  input %0: f32[64]{1} = user(0)
  %1: f32[64]{1} = aten::bernoulli(%0)
  %2: f32[64]{1} = aten::rand_like(%0)
  %3: f32[64]{1} = aten::rand_like(%0)
  output %3 = output(0)
  output %1 = output(1)
})",
                        {at::full({64}, 0.5)});
}

TEST(Plan, OneNodeMayReadAValueTwice) {
  expect_as_interpreted(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::sin(%0)
  %2: f32[2]{1} = aten::mul.Tensor(%1, %1)
  %3: f32[4]{1} = aten::cat([%2, %2])
  output %3 = output(0)
})",
                        {ramp({2})});
}

TEST(Plan, InputsAndRepeatedValuesMayBeOutputs) {
  const Plan plan(verified(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = user(1)
  %2: f32[2]{1} = aten::sin(%0)
  output %2 = output(0)
  output %0 = output(1)
  output %2 = output(2)
  output %1 = mutated(1)
  output %0 = output(3)
})"));
  const at::Tensor x = ramp({2}), y = ramp({2}).mul(2);
  const Tensors outputs = plan.run({x, y});
  EXPECT_TRUE(at::equal(outputs[0], x.sin()));
  EXPECT_TRUE(outputs[1].is_same(x));
  EXPECT_TRUE(outputs[2].is_same(outputs[0]));
  EXPECT_TRUE(outputs[3].is_same(y));
  EXPECT_TRUE(outputs[4].is_same(x));
}

TEST(Plan, RunsBelowAutograd) {
  const Plan plan(verified(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::sin(%0)
  output %1 = output(0)
})"));
  const at::Tensor x = ramp({2}).requires_grad_();
  EXPECT_FALSE(plan.run({x})[0].requires_grad());
  EXPECT_TRUE(at::sin(x).requires_grad());
}

// ---- overwriting

TEST(Plan, OverwritesByTheInPlaceVariant) {
  expect_as_interpreted(R"(graph {
  input %0: f32[2,3]{3,1} = user(0)
  %1: f32[2,3]{3,1} = aten::neg(%0)
  %2: f32[2,3]{3,1} = aten::relu(%1) overwrites 0
  %3: f32[2,3]{3,1} = aten::add.Tensor(%2, %0) overwrites 0
  %4: f32[2,3]{3,1} = aten::pow.Tensor_Scalar(%3, exponent=2) overwrites 0
  %5: f32[2,3]{3,1} = aten::mul.Tensor(%4, wrapped(f64 2.0)) overwrites 0
  output %5 = output(0)
  output %0 = output(1)
})",
                        {ramp({2, 3})});
}

TEST(Plan, TheResultIsTheOverwrittenTensor) {
  const Plan plan(verified(R"(graph {
  input %0: f32[2]{1} = saved(%9)
  %1: f32[2]{1} = aten::neg(%0) overwrites 0
  output %1 = output(0)
})"));
  const at::Tensor saved = at::ones({2});
  const Tensors outputs = plan.run({saved});
  EXPECT_TRUE(outputs[0].is_same(saved));
  EXPECT_TRUE(at::equal(saved, at::full({2}, -1.0)));
}

TEST(Plan, OverwritingWithoutAnInPlaceVariantIsAnError) {
  const auto expect_refused = [](std::string_view call, const char* name) {
    const Graph graph = parse_graph(
        fmt::format("graph {{\n input %0: f32[2]{{1}} = user(0)\n %1: f32[2]{{1}} = aten::sin(%0)\n"
                    " %2: f32[2]{{1}} = {}\n}}",
                    call));
    EXPECT_THAT([&] { Plan plan(graph); },
                ThrowsMessage<c10::Error>(AllOf(HasSubstr("node 1"), HasSubstr(name),
                                                HasSubstr("expected an in-place variant"))));
  };
  expect_refused("aten::flip(%1, dims=[0]) overwrites 0", "`aten::flip`");
  expect_refused("aten::add.Tensor(%0, %1) overwrites 1", "`aten::add.Tensor`");
  expect_refused("aten::add.Tensor(%0, %1) overwrites 7", "overwrites argument 7");
}

// ---- memory

// `test_plan::probe(Tensor x) -> Tensor` copies, and records who else holds its argument and what
// of the watched tensors is alive.
struct Probe {
  static inline std::vector<WeakTensor> watched;
  static inline std::vector<size_t> use_counts;
  static inline std::vector<size_t> alive;

  static at::Tensor call(const at::Tensor& x) {
    use_counts.push_back(x.use_count());
    size_t count = 0;
    for (const WeakTensor& one : watched) count += !one.expired();
    alive.push_back(count);
    at::Tensor result = x.clone();
    watched.push_back(watch(result));
    return result;
  }

  static void reset() {
    watched.clear();
    use_counts.clear();
    alive.clear();
  }
};

TORCH_LIBRARY(test_plan, library) {
  library.def("probe(Tensor x) -> Tensor");
  library.def("fail(Tensor x, Tensor[] xs) -> Tensor");
  library.def("second(Tensor x, Tensor y) -> Tensor");
}
TORCH_LIBRARY_IMPL(test_plan, CPU, library) {
  library.impl("probe", Probe::call);
  library.impl("fail", [](const at::Tensor&, at::TensorList) -> at::Tensor {
    TORCH_CHECK(false, "failed on purpose");
  });
  library.impl("second", [](const at::Tensor& x, const at::Tensor& y) {
    TORCH_CHECK(!x.defined(), "expected an undefined tensor");
    return y.clone();
  });
}

TEST(PlanMemory, AnIntermediateDiesWithItsLastUse) {
  Probe::reset();
  const Plan plan(verified(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = test_plan::probe(%0)
  %2: f32[2]{1} = test_plan::probe(%1)
  %3: f32[2]{1} = test_plan::probe(%2)
  %4: f32[2]{1} = test_plan::probe(%3)
  output %4 = output(0)
})"));
  Tensors inputs = {ramp({2})};
  const Tensors outputs = plan.run(std::move(inputs));
  EXPECT_THAT(Probe::use_counts, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(Probe::alive, ElementsAre(0, 1, 1, 1));  // the argument alone
  EXPECT_EQ(outputs[0].use_count(), 1u);
  Probe::reset();
}

/// Holds the only reference to its tensor; a braced list would keep one more.
Tensors one_ramp() {
  Tensors inputs;
  inputs.push_back(ramp({2}));
  return inputs;
}

TEST(PlanMemory, AValueLivesUntilItsLastUse) {
  Probe::reset();
  const Plan plan(verified(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = test_plan::probe(%0)
  %2: f32[2]{1} = test_plan::probe(%1)
  %3: f32[4]{1} = aten::cat([%1, %2])
  %4: f32[4]{1} = test_plan::probe(%3)
  output %4 = output(0)
})"));
  plan.run(one_ramp());
  EXPECT_THAT(Probe::use_counts, ElementsAre(1, 2, 1));
  EXPECT_THAT(Probe::alive, ElementsAre(0, 1, 0));
  Probe::reset();
}

TEST(PlanMemory, AnUnreadResultDiesAtOnce) {
  Probe::reset();
  const Plan plan(verified(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = test_plan::probe(%0)
  %2: f32[2]{1} = test_plan::probe(%0)
  output %2 = output(0)
})"));
  plan.run(one_ramp());
  EXPECT_THAT(Probe::use_counts, ElementsAre(2, 1));
  EXPECT_THAT(Probe::alive, ElementsAre(0, 0));
  Probe::reset();
}

TEST(PlanMemory, InputsThatAreMovedInAreReleased) {
  Probe::reset();
  const Plan plan(verified(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = user(1)
  input %2: f32[2]{1} = user(2)
  %3: f32[2]{1} = test_plan::probe(%0)
  %4: f32[2]{1} = aten::mul.Tensor(%3, %2)
  %5: f32[2]{1} = test_plan::probe(%4)
  output %5 = output(0)
})"));
  Tensors inputs = {ramp({2}), ramp({2}), ramp({2})};
  for (const at::Tensor& input : inputs) Probe::watched.push_back(watch(input));
  plan.run(std::move(inputs));
  // At first the argument and %2: %1 is never read. Then nothing: %3 has died too.
  EXPECT_THAT(Probe::alive, ElementsAre(2, 0));
  Probe::reset();
}

TEST(PlanMemory, OutputsAreHeldByTheCallerAlone) {
  const Plan plan(verified(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::sin(%0)
  [%2: f32[1]{1}, %3: f32[1]{1}+1] = aten::split.Tensor(%1, split_size=1)
  output %1 = output(0)
  output %2 = output(1)
  output %1 = output(2)
})"));
  Tensors outputs = plan.run({ramp({2})});
  EXPECT_EQ(outputs[0].use_count(), 2u);
  EXPECT_EQ(outputs[1].use_count(), 1u);
}

TEST(PlanMemory, AnExceptionLeavesNothingBehind) {
  Probe::reset();
  const Plan plan(verified(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = user(1)
  %2: f32[2]{1} = test_plan::probe(%0)
  %3: f32[2]{1} = test_plan::probe(%0)
  %4: f32[2]{1} = test_plan::fail(%2, [%3, %2])
  output %4 = output(0)
  output %1 = output(1)
})"));
  for (int run = 0; run < 2; ++run) {
    Tensors inputs = {ramp({2}), ramp({2})};
    for (const at::Tensor& input : inputs) Probe::watched.push_back(watch(input));
    EXPECT_THAT([&] { plan.run(std::move(inputs)); },
                ThrowsMessage<c10::Error>(HasSubstr("failed on purpose")));
    for (const WeakTensor& one : Probe::watched) EXPECT_TRUE(one.expired());
    EXPECT_TRUE(at::sin(at::ones({2}).requires_grad_()).requires_grad());
  }
  EXPECT_EQ(Probe::watched.size(), 8u);
  Probe::reset();
}

// ---- threads

TEST(Plan, RunsOnSeveralThreadsAtOnce) {
  const Graph graph = verified(R"(graph {
  input %0: f32[8,8]{8,1} = user(0)
  input %1: i64[2]{1} = user(1)
  %2: f32[8,8]{8,1} = aten::sin(%0)
  %3: f32[8,8]{8,1} = aten::mul.Tensor(%2, wrapped(f64 3.0)) overwrites 0
  %4: f32[8,2]{2,1} = aten::index.Tensor(%3, [none, %1])
  %5: f32[8,4]{4,1} = aten::cat([%4, %4], dim=1)
  %6: f32[8]{1} = aten::sum.dim_IntList(%5, dim=[1])
  output %6 = output(0)
  output %0 = output(1)
})");
  const Plan plan(graph);
  const at::Tensor places = at::tensor({5, 2}, at::kLong);
  std::vector<int> failures(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      const at::Tensor x = ramp({8, 8}).add(static_cast<double>(t));
      const at::Tensor expected = x.sin().mul(3.0).index_select(1, places).sum(1).mul(2);
      for (int run = 0; run < 50; ++run) {
        const Tensors outputs = plan.run({x, places});
        failures[t] += !at::allclose(outputs[0], expected) || !outputs[1].is_same(x);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(failures, ElementsAre(0, 0, 0, 0));
}

// ---- errors

TEST(Plan, CountsItsInputs) {
  const Plan plan(
      parse_graph("graph {\n input %0: f32[2]{1} = user(0)\n output %0 = output(0)\n}"));
  EXPECT_THAT([&] { plan.run({}); },
              ThrowsMessage<c10::Error>(HasSubstr("plan: expected 1 inputs, got 0")));
}

TEST(Plan, ReadingAnUndefinedValueIsAnError) {
  EXPECT_THAT([] { Plan(parse_graph("graph {\n %1: f32[2]{1} = aten::sin(%0)\n}")); },
              ThrowsMessage<c10::Error>(HasSubstr("node 0 (`aten::sin`) reads %0")));
  EXPECT_THAT([] { Plan(parse_graph("graph {\n output %0 = output(0)\n}")); },
              ThrowsMessage<c10::Error>(HasSubstr("an output reads %0")));
}

#if FOREGRAD_CHECKED
TEST(PlanChecked, ResultsMustBeAsDeclared) {
  const auto expect_refused = [](std::string_view node, const char* expected, const char* got) {
    const Plan plan(parse_graph(fmt::format("graph {{\n {}\n}}", node)));
    EXPECT_THAT([&] { plan.run({}); },
                ThrowsMessage<c10::Error>(
                    AllOf(HasSubstr("plan: node 0 (`aten::ones`), value %0"),
                          HasSubstr(fmt::format("expected {}, got {}", expected, got)))));
  };
  expect_refused("%0: f32[3]{1} = aten::ones(size=[2])", "f32[3]{1}", "f32[2]{1}");
  expect_refused("%0: f64[2]{1} = aten::ones(size=[2])", "f64[2]{1}", "f32[2]{1}");
  expect_refused("%0: f32[2,2]{1,2} = aten::ones(size=[2, 2])", "f32[2,2]{1,2}", "f32[2,2]{2,1}");
  // The stride of one element is no one's to see.
  EXPECT_NO_THROW(
      Plan(parse_graph("graph {\n %0: f32[1,2]{7,1} = aten::ones(size=[1, 2])\n}")).run({}));
}

TEST(PlanChecked, InputsMustBeAsDeclared) {
  const Plan plan(
      parse_graph("graph {\n input %0: f32[2]{1} = user(0)\n output %0 = output(0)\n}"));
  EXPECT_THAT([&] { plan.run({at::ones({3})}); },
              ThrowsMessage<c10::Error>(
                  HasSubstr("input 0 (`user(0)`): expected f32[2]{1}, got f32[3]{1}")));
  EXPECT_NO_THROW(plan.run({at::ones({2, 2}).select(1, 0)}));  // strides are free
}
#endif

}  // namespace
}  // namespace foregrad
