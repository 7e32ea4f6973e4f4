// Runs a function eagerly and compiled from equal states and compares what a caller can see.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "foregrad/compile.h"

namespace foregrad::testing {

using Tensors = std::vector<at::Tensor>;
/// Makes the arguments anew; called from equal generator states, so that both runs get equal ones.
using MakeState = std::function<Tensors()>;
using Program = std::function<Tensors(Tensors)>;
/// Acts on arguments and results as a caller would, and returns more tensors to compare.
using Caller = std::function<Tensors(const Tensors& arguments, const Tensors& results)>;

inline void expect_same(const at::Tensor& got, const at::Tensor& eager, const std::string& what) {
  ASSERT_EQ(got.defined(), eager.defined()) << what;
  if (!eager.defined()) return;
  EXPECT_EQ(got.scalar_type(), eager.scalar_type()) << what;
  EXPECT_EQ(got.sizes(), eager.sizes()) << what;
  EXPECT_EQ(got.strides(), eager.strides()) << what;
  EXPECT_EQ(got.requires_grad(), eager.requires_grad()) << what;
  EXPECT_EQ(got.is_leaf(), eager.is_leaf()) << what;
  EXPECT_TRUE(at::allclose(got.detach(), eager.detach(), 0, 0, true)) << what << "\n"
                                                                      << got << "\n"
                                                                      << eager;
}

/// What one run left behind, or that it threw.
struct Outcome {
  Tensors tensors;
  bool threw = false;
};

inline Outcome outcome_of(const std::function<Tensors(const Tensors&)>& run, const MakeState& make,
                          const Caller& caller) {
  torch::manual_seed(11);
  Outcome outcome;
  Tensors arguments = make();
  torch::manual_seed(12);
  try {
    Tensors results = run(arguments);
    if (caller) outcome.tensors = caller(arguments, results);
    outcome.tensors.insert(outcome.tensors.end(), results.begin(), results.end());
  } catch (const c10::Error&) {
    outcome.threw = true;
  }
  outcome.tensors.insert(outcome.tensors.end(), arguments.begin(), arguments.end());
  for (const auto& argument : arguments) {
    if (argument.defined() && argument.is_leaf()) outcome.tensors.push_back(argument.grad());
  }
  outcome.tensors.push_back(at::rand({1}));  // the generator's place
  return outcome;
}

/// Compares three calls of one compiled function with eager. Returns how many of them ran eagerly.
inline size_t expect_twin(const Program& program, const MakeState& make,
                          const Caller& caller = {}) {
  auto compiled = compile([&](const Tensors& arguments) -> Tensors { return program(arguments); });
  for (int call = 0; call < 3; ++call) {
    const Outcome eager = outcome_of([&](const Tensors& in) { return program(in); }, make, caller);
    const Outcome got = outcome_of([&](const Tensors& in) { return compiled(in); }, make, caller);
    EXPECT_EQ(got.threw, eager.threw) << "call " << call;
    EXPECT_EQ(got.tensors.size(), eager.tensors.size());
    for (size_t i = 0; i < std::min(got.tensors.size(), eager.tensors.size()); ++i) {
      expect_same(got.tensors[i], eager.tensors[i],
                  "call " + std::to_string(call) + ", tensor " + std::to_string(i));
    }
  }
  return compiled.report().eager_calls;
}

}  // namespace foregrad::testing
