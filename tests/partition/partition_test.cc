#include "partition/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "graph/refusal.h"
#include "passes/graph_check.h"
#include "passes/random_graph.h"

namespace foregrad {
namespace {

using ::testing::HasSubstr;
using testing::inputs_of;
using testing::RandomGraph;
using testing::reseed;
using testing::same_bits;
using ::testing::ThrowsMessage;

SavedValues values(std::initializer_list<uint32_t> ids) {
  SavedValues saved;
  for (const uint32_t id : ids) saved.push_back({id});
  return saved;
}

// Runs forward, writes the mutated inputs back as the runtime does, and runs backward: the outputs
// in the joint's order.
std::vector<at::Tensor> run_in_two(const Graph& joint, const Partition& parts,
                                   const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> primals, tangents;
  std::vector<InputRole> primal_roles;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_primal = primal_of(joint.inputs[i].role).has_value();
    (is_primal ? primals : tangents).push_back(inputs[i]);
    if (is_primal) primal_roles.push_back(joint.inputs[i].role);
  }
  const auto forward = interpret(parts.forward, primals);
  std::vector<at::Tensor> saved, primal_outputs, shown;
  for (size_t i = 0; i < forward.size(); ++i) {
    const OutputRole& role = parts.forward.outputs[i].role;
    (std::holds_alternative<Saved>(role) ? saved : primal_outputs).push_back(forward[i]);
    if (!std::holds_alternative<Saved>(role))  // the caller's copy, before anything is written
      shown.push_back(forward[i].defined() ? forward[i].clone() : at::Tensor());
  }
  for (size_t i = 0; i < primal_outputs.size(); ++i) {
    const auto* mutated = std::get_if<MutatedInput>(&parts.forward.outputs[i].role);
    if (!mutated) continue;
    for (size_t k = 0; k < primals.size(); ++k) {
      if (primal_of(primal_roles[k]) == mutated->of) primals[k].copy_(shown[i]);
    }
  }
  std::vector<at::Tensor> backward_inputs = saved;
  backward_inputs.insert(backward_inputs.end(), tangents.begin(), tangents.end());
  for (size_t i = 0; i < saved.size(); ++i) {
    const ValueId value = parts.backward.inputs.at(i).value;
    EXPECT_EQ(type_of(saved[i]), joint.type(value)) << "saved value %" << value.index;
  }
  auto gradients = interpret(parts.backward, backward_inputs);
  std::vector<at::Tensor> outputs;
  size_t next_primal = 0, next_gradient = 0;
  for (const GraphOutput& output : joint.outputs) {
    const bool is_gradient = std::holds_alternative<Grad>(output.role);
    outputs.push_back(is_gradient ? gradients.at(next_gradient++) : shown.at(next_primal++));
  }
  return outputs;
}

void expect_equals_joint(const Graph& joint, const Partition& parts, uint64_t seed) {
  verify(parts.forward, "forward");
  verify(parts.backward, "backward");
  const auto inputs = inputs_of(joint, seed);
  reseed(seed);
  std::vector<at::Tensor> expected;
  for (const at::Tensor& output : interpret(joint, inputs))
    expected.push_back(output.defined() ? output.clone() : output);
  reseed(seed);
  const auto got = run_in_two(joint, parts, inputs);
  for (size_t i = 0; i < got.size(); ++i) {
    const at::Tensor left = expected[i].defined() ? expected[i] : at::Tensor();
    const at::Tensor right = got[i].defined() ? got[i].clone() : at::Tensor();
    EXPECT_TRUE(same_bits(left, right))
        << "output " << i << "\njoint: " << print_graph(joint)
        << "forward: " << print_graph(parts.forward) << "backward: " << print_graph(parts.backward);
  }
}

void expect_partition(std::string_view joint_text, const SavedValues& saved,
                      std::string_view forward, std::string_view backward) {
  const Graph joint = parse_graph(joint_text);
  verify(joint, "joint");
  const Partition parts = partition(joint, saved);
  EXPECT_EQ(print_graph(parts.forward), print_graph(parse_graph(forward)));
  EXPECT_EQ(print_graph(parts.backward), print_graph(parse_graph(backward)));
  expect_equals_joint(joint, parts, 1);
}

constexpr std::string_view kChain = R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = lifted(1)
  input %2: f32[2]{1} = tangent(output(0))
  %3: f32[2]{1} = aten::sin(%0)
  %4: f32[2]{1} = aten::sin(%3)
  %5: f32[2]{1} = aten::mul.Tensor(%4, %1)
  backward %6: f32[2]{1} = aten::mul.Tensor(%2, %1)
  backward %7: f32[2]{1} = aten::cos(%3)
  backward %8: f32[2]{1} = aten::mul.Tensor(%6, %7)
  output %5 = output(0)
  output %8 = grad(0)
  output undefined = grad(1)
})";

TEST(Partition, CutsAtPhases) {
  expect_partition(kChain, choose_saved_values(parse_graph(kChain)), R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = lifted(1)
  %3: f32[2]{1} = aten::sin(%0)
  %4: f32[2]{1} = aten::sin(%3)
  %5: f32[2]{1} = aten::mul.Tensor(%4, %1)
  output %5 = output(0)
  output %1 = saved(%1)
  output %3 = saved(%3)
})",
                   R"(graph {
  input %1: f32[2]{1} = saved(%1)
  input %3: f32[2]{1} = saved(%3)
  input %2: f32[2]{1} = tangent(output(0))
  backward %6: f32[2]{1} = aten::mul.Tensor(%2, %1)
  backward %7: f32[2]{1} = aten::cos(%3)
  backward %8: f32[2]{1} = aten::mul.Tensor(%6, %7)
  output %8 = grad(0)
  output undefined = grad(1)
})");
}

TEST(Partition, RunsAgainWhatIsNotSaved) {
  // Saved values of another backward: one is not read here, one that is read here is missing.
  expect_partition(kChain, values({0, 1, 4}), R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = lifted(1)
  %3: f32[2]{1} = aten::sin(%0)
  %4: f32[2]{1} = aten::sin(%3)
  %5: f32[2]{1} = aten::mul.Tensor(%4, %1)
  output %5 = output(0)
  output %0 = saved(%0)
  output %1 = saved(%1)
  output %4 = saved(%4)
})",
                   R"(graph {
  input %0: f32[2]{1} = saved(%0)
  input %1: f32[2]{1} = saved(%1)
  input %4: f32[2]{1} = saved(%4)
  input %2: f32[2]{1} = tangent(output(0))
  backward %3: f32[2]{1} = aten::sin(%0)
  backward %6: f32[2]{1} = aten::mul.Tensor(%2, %1)
  backward %7: f32[2]{1} = aten::cos(%3)
  backward %8: f32[2]{1} = aten::mul.Tensor(%6, %7)
  output %8 = grad(0)
  output undefined = grad(1)
})");
}

TEST(Partition, TakesViewsAgain) {
  constexpr std::string_view joint = R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  input %1: f32[2]{1} = tangent(output(0))
  %2: f32[2,2]{2,1} = aten::exp(%0)
  %3: f32[2,2]{1,2} = aten::t(%2)
  [%4: f32[1,2]{1,2}, %5: f32[1,2]{1,2}+1] = aten::split.Tensor(%3, split_size=1)
  %6: f32[2]{2}+1 = aten::select.int(%5, dim=0, index=0)
  backward %7: f32[2]{1} = aten::mul.Tensor(%1, %6)
  backward %8: f32[2]{1} = aten::alias(%7)
  output %6 = output(0)
  output %8 = grad(0)
})";
  expect_partition(joint, choose_saved_values(parse_graph(joint)), R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  %2: f32[2,2]{2,1} = aten::exp(%0)
  %3: f32[2,2]{1,2} = aten::t(%2)
  [%4: f32[1,2]{1,2}, %5: f32[1,2]{1,2}+1] = aten::split.Tensor(%3, split_size=1)
  %6: f32[2]{2}+1 = aten::select.int(%5, dim=0, index=0)
  output %6 = output(0)
  output %2 = saved(%2)
})",
                   R"(graph {
  input %2: f32[2,2]{2,1} = saved(%2)
  input %1: f32[2]{1} = tangent(output(0))
  backward %3: f32[2,2]{1,2} = aten::t(%2)
  backward [%4: f32[1,2]{1,2}, %5: f32[1,2]{1,2}+1] = aten::split.Tensor(%3, split_size=1)
  backward %6: f32[2]{2}+1 = aten::select.int(%5, dim=0, index=0)
  backward %7: f32[2]{1} = aten::mul.Tensor(%1, %6)
  backward %8: f32[2]{1} = aten::alias(%7)
  output %8 = grad(0)
})");
}

TEST(Partition, SavedHalfOfASplitKeepsItsId) {
  constexpr std::string_view joint = R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  [%1: f32[1,2]{2,1}, %2: f32[1,2]{2,1}+2] = aten::split.Tensor(%0, split_size=1)
  backward %3: f32[1,2]{2,1} = aten::sub.Tensor(%1, %2)
  output %3 = grad(0)
})";
  expect_partition(joint, values({0, 1}), R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  [%1: f32[1,2]{2,1}, %2: f32[1,2]{2,1}+2] = aten::split.Tensor(%0, split_size=1)
  output %0 = saved(%0)
  output %1 = saved(%1)
})",
                   R"(graph {
  input %0: f32[2,2]{2,1} = saved(%0)
  input %1: f32[1,2]{2,1} = saved(%1)
  backward [%4: f32[1,2]{2,1}, %2: f32[1,2]{2,1}+2] = aten::split.Tensor(%0, split_size=1)
  backward %3: f32[1,2]{2,1} = aten::sub.Tensor(%1, %2)
  output %3 = grad(0)
})");
}

TEST(Partition, CopiesAMutatedPrimalOnlyIfItIsSaved) {
  constexpr std::string_view joint = R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  input %1: f32[2,2]{2,1} = user(1)
  input %2: f32[2,2]{2,1} = tangent(mutated(0))
  %3: f32[2,2]{1,2} = aten::t(%0)
  %4: f32[2,2]{2,1} = aten::mul.Tensor(%0, %0)
  %5: f32[2,2]{2,1} = aten::exp(%1)
  backward %6: f32[2,2]{2,1} = aten::mul.Tensor(%2, %3)
  backward %7: f32[2,2]{2,1} = aten::mul.Tensor(%6, %4)
  backward %8: f32[2,2]{2,1} = aten::mul.Tensor(%7, %5)
  output %4 = mutated(0)
  output %5 = mutated(1)
  output %8 = grad(0)
})";
  expect_partition(joint, choose_saved_values(parse_graph(joint)), R"(graph {
  input %0: f32[2,2]{2,1} = user(0)
  input %1: f32[2,2]{2,1} = user(1)
  %3: f32[2,2]{1,2} = aten::t(%0)
  %4: f32[2,2]{2,1} = aten::mul.Tensor(%0, %0)
  %5: f32[2,2]{2,1} = aten::exp(%1)
  %9: f32[2,2]{2,1} = aten::clone(%0)
  output %4 = mutated(0)
  output %5 = mutated(1)
  output %9 = saved(%0)
  output %4 = saved(%4)
  output %5 = saved(%5)
})",
                   R"(graph {
  input %0: f32[2,2]{2,1} = saved(%0)
  input %4: f32[2,2]{2,1} = saved(%4)
  input %5: f32[2,2]{2,1} = saved(%5)
  input %2: f32[2,2]{2,1} = tangent(mutated(0))
  backward %3: f32[2,2]{1,2} = aten::t(%0)
  backward %6: f32[2,2]{2,1} = aten::mul.Tensor(%2, %3)
  backward %7: f32[2,2]{2,1} = aten::mul.Tensor(%6, %4)
  backward %8: f32[2,2]{2,1} = aten::mul.Tensor(%7, %5)
  output %8 = grad(0)
})");
}

TEST(Partition, CopiesNoPrimalThatTheCallLeavesAlone) {
  const Graph joint = parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = lifted(1)
  %2: f32[2]{1} = aten::exp(%1)
  backward %3: f32[2]{1} = aten::neg(%0)
  output %2 = mutated(1)
  output %3 = grad(0)
})");
  const Partition parts = partition(joint, choose_saved_values(joint));
  EXPECT_EQ(parts.forward.nodes.size(), 1u);
  EXPECT_EQ(parts.forward.outputs.back().value, ValueId{0});
}

TEST(Partition, CopyOfAMutatedPrimalKeepsItsType) {
  // Offset, gaps, a permuted order, a view base and a view of it that is saved.
  for (const std::string type :
       {"f32[2,2]{2,1}", "f32[2,2]{1,2}", "f32[2,2]{5,2}", "f32[2,2]{2,1}+3", "f32[2,2]{7,2}+4",
        "f32[2,2]{1,9}", "f32[2,0]{1,1}", "f32[1,2]{9,1}", "f32[]{}", "f32[]{}+5"}) {
    SCOPED_TRACE(type);
    const Graph joint =
        parse_graph("graph {\n  input %0: " + type + " = view_base(0)\n  %1: " + type +
                    " = aten::add.Tensor(%0, %0)\n  %2: " + type +
                    " = aten::alias(%0)\n  backward %3: " + type +
                    " = aten::add.Tensor(%0, %2)\n  output %1 = mutated(0)\n  "
                    "output %3 = grad(0)\n}");
    const Partition parts = partition(joint, values({0, 2}));
    EXPECT_EQ(parts.forward.nodes.size(), 4u);
    // Results get the strides that the operators choose, which the text above does not know.
    const auto inputs = inputs_of(joint, 3);
    inputs[0].abs_().add_(1);
    const at::Tensor expected = inputs[0].add(inputs[0]);
    const auto outputs = run_in_two(joint, parts, inputs);
    EXPECT_TRUE(outputs[1].equal(expected));
    EXPECT_FALSE(inputs[0].numel() > 0 && inputs[0].equal(expected.div(2)));
  }
}

TEST(Partition, RefusesACopyThatLosesALazyBit) {
  const Graph joint = parse_graph(R"(graph {
  input %0: c64[2]{1} conj = user(0)
  %1: c64[2]{1} = aten::mul.Tensor(%0, %0)
  backward %2: c64[2]{1} = aten::mul.Tensor(%0, %0)
  output %1 = mutated(0)
  output %2 = grad(0)
})");
  EXPECT_THROW(partition(joint, choose_saved_values(joint)), Refusal);
}

TEST(Partition, KeepsBackwardNodesThatNoTangentReaches) {
  expect_partition(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  backward %2: f32[2]{1} = aten::ones_like(%1)
  backward %3: f32[2]{1} = aten::bernoulli.p(%2, p=0.5)
  output %1 = output(0)
  output %2 = grad(0)
})",
                   values({1}), R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::neg(%0)
  output %1 = output(0)
  output %1 = saved(%1)
})",
                   R"(graph {
  input %1: f32[2]{1} = saved(%1)
  backward %2: f32[2]{1} = aten::ones_like(%1)
  backward %3: f32[2]{1} = aten::bernoulli.p(%2, p=0.5)
  output %2 = grad(0)
})");
}

TEST(Partition, NamesThePathToAMissingPrimal) {
  EXPECT_THAT([] { partition(parse_graph(kChain), values({1})); },
              ThrowsMessage<c10::Error>(
                  HasSubstr("backward needs primal %0, which is not saved, for %3 <- %0")));
}

TEST(Partition, NeverRunsRandomNodesTwice) {
  const Graph joint = parse_graph(R"(graph {
  input %0: f32[2]{1} = user(0)
  %1: f32[2]{1} = aten::bernoulli.p(%0, p=0.5)
  %2: f32[2]{1} = aten::neg(%1)
  backward %3: f32[2]{1} = aten::exp(%2)
  output %1 = output(0)
  output %3 = grad(0)
})");
  EXPECT_THAT([&] { partition(joint, values({0})); },
              ThrowsMessage<c10::Error>(HasSubstr("%2 <- %1, and `aten::bernoulli.p` can't run")));
  EXPECT_EQ(partition(joint, values({1})).backward.nodes.size(), 2u);
}

TEST(Partition, ChecksSavedValues) {
  const Graph joint = parse_graph(kChain);
  EXPECT_THAT(
      [&] {
        partition(joint, values({3, 1}));
      },
      ThrowsMessage<c10::Error>(HasSubstr("expected one after %3, got %1")));
  EXPECT_THAT(
      [&] {
        partition(joint, values({1, 1, 3}));
      },
      ThrowsMessage<c10::Error>(HasSubstr("expected one after %1, got %1")));
  for (const uint32_t id : {2u, 6u, 99u}) {
    EXPECT_THAT([&] { partition(joint, values({id})); },
                ThrowsMessage<c10::Error>(HasSubstr("got %" + std::to_string(id))));
  }
}

TEST(Partition, ForwardThenBackwardEqualsJoint) {
  size_t copies = 0, views = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Graph joint = RandomGraph(seed).make_joint(12);
    const SavedValues saved = choose_saved_values(joint);
    const Partition parts = partition(joint, saved);
    expect_equals_joint(joint, parts, seed);
    if (::testing::Test::HasFailure()) return;
    copies += parts.forward.values.size() - joint.values.size();
    views += parts.forward.nodes.size() + parts.backward.nodes.size() > joint.nodes.size();
    // Nothing is saved in vain.
    for (const ValueId value : saved) {
      bool is_read = false;
      for (const Node& node : parts.backward.nodes)
        for_each_read(node, [&](ValueId read) { is_read = is_read || read == value; });
      for (const GraphOutput& output : parts.backward.outputs)
        is_read = is_read || output.value == value;
      EXPECT_TRUE(is_read) << "%" << value.index;
    }
  }
  EXPECT_GT(copies, 20u);
  EXPECT_GT(views, 50u);
}

TEST(Partition, EqualsJointForAnySavedValuesThatSuffice) {
  size_t ran = 0, refused = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Graph joint = RandomGraph(seed).make_joint(12);
    std::mt19937 random(seed);
    SavedValues saved;
    std::vector<bool> is_candidate(joint.values.size());
    for (const GraphInput& input : joint.inputs)
      is_candidate[input.value.index] = primal_of(input.role) && random() % 8 != 0;
    for (const Node& node : joint.nodes) {
      if (node.phase == Phase::Forward)
        for_each_definition(node, [&](ValueId id) { is_candidate[id.index] = random() % 3 == 0; });
    }
    for (uint32_t i = 0; i < is_candidate.size(); ++i) {
      if (is_candidate[i]) saved.push_back({i});
    }
    std::optional<Partition> parts;
    try {
      parts = partition(joint, saved);
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("which is not saved"));
      ++refused;
      continue;
    }
    expect_equals_joint(joint, *parts, seed);
    if (::testing::Test::HasFailure()) return;
    ++ran;
  }
  EXPECT_GT(ran, 100u);
  EXPECT_GT(refused, 20u);
}

TEST(Partition, ForwardIsTheSameForEveryBackward) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Graph joint = RandomGraph(seed).make_joint(12);
    const SavedValues saved = choose_saved_values(joint);
    Graph fewer = joint;
    std::erase_if(fewer.nodes, [](const Node& node) { return node.phase == Phase::Backward; });
    for (GraphOutput& output : fewer.outputs) {
      if (std::holds_alternative<Grad>(output.role)) output.value = std::nullopt;
    }
    EXPECT_EQ(print_graph(partition(joint, saved).forward),
              print_graph(partition(fewer, saved).forward));
  }
}

// The joint graph of two rounds for y = exp(x): the first round's gradient t * exp(x), then its
// own.
constexpr std::string_view kTwoRounds = R"(graph {
  input %0: f32[2]{1} = user(0)
  input %1: f32[2]{1} = user(1)
  input %2: f32[2]{1} = tangent(output(0))
  %3: f32[2]{1} = aten::exp(%0)
  %4: f32[2]{1} = aten::exp(%0)
  %5: f32[2]{1} = aten::mul.Tensor(%1, %4)
  backward %6: f32[2]{1} = aten::mul.Tensor(%2, %4)
  backward %7: f32[2]{1} = aten::mul.Tensor(%6, %1)
  output %5 = output(0)
  output %7 = grad(0)
})";

TEST(CutGradients, TakesEqualValuesThatAreThere) {
  const Graph joint = parse_graph(kTwoRounds);
  const Graph first = cut_gradients(joint, {ValueId{3}}, {InputIndex{1}}, {ValueId{1}, ValueId{4}});
  EXPECT_EQ(print_graph(first), R"(graph {
  input %3: f32[2]{1} = saved(%3)
  input %1: f32[2]{1} = user(1)
  backward %5: f32[2]{1} = aten::mul.Tensor(%1, %3)
  output %5 = output(0)
  output %1 = saved(%1)
  output %3 = saved(%4)
}
)");
  const Graph second = cut_last_gradients(joint, {ValueId{1}, ValueId{4}});
  EXPECT_EQ(second.inputs.size(), 3U);
  EXPECT_EQ(second.nodes.size(), 2U);
}

TEST(CutGradients, NamesAPrimalThatIsMissing) {
  const Graph joint = parse_graph(kTwoRounds);
  EXPECT_THROW(cut_gradients(joint, {}, {InputIndex{1}}, {}), c10::Error);
}

}  // namespace
}  // namespace foregrad
