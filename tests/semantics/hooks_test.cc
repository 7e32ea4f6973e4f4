// Hooks and `retain_grad` on what goes into a call and comes out of it: as on eager's results, each
// of which has a node of its own.
#include <torch/csrc/autograd/autograd.h>

#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

using torch::autograd::grad;

/// Doubles the gradient. Notes that it came by; an undefined one is an error.
void double_by_hook(const at::Tensor& tensor, const std::string& name, Seen& seen) {
  tensor.register_hook([&seen, name](const at::Tensor& gradient) {
    seen.note_values("gradient at " + name, gradient);
    return gradient * 2;
  });
}

Tensors two_results(const Tensors& in) { return {in[0] * in[1], in[0].exp(), in[1].sin()}; }

const MakeStart two_leaves = start_of({Kind::Leaf, Kind::Leaf}, {3});

TEST(Hooks, OnlyThatOfAResultThatIsUsedIsCalled) {
  expect_as_eager(two_results, two_leaves, [](const Called& called) {
    for (size_t i = 0; i < called.results.size(); ++i)
      double_by_hook(called.results[i], "result " + std::to_string(i), called.seen);
    called.results[1].sum().backward({}, /*retain_graph=*/true);
    (called.results[0] * called.results[2]).sum().backward();
  });
}

TEST(Hooks, OnAnArgument) {
  expect_as_eager(two_results, two_leaves, [](const Called& called) {
    double_by_hook(called.arguments[0], "argument 0", called.seen);
    (called.results[0] + called.results[1]).sum().backward();
  });
}

TEST(Hooks, GradientsOfGradientsPassThemAgain) {
  const Program saves_its_results = [](const Tensors& in) -> Tensors {
    const at::Tensor power = in[0].exp();
    return {power, power.sum() * in[1]};
  };
  for (const Program& program : {Program(two_results), saves_its_results}) {
    expect_as_eager(program, two_leaves, [](const Called& called) {
      double_by_hook(called.results[0], "result 0", called.seen);
      double_by_hook(called.results[1], "result 1", called.seen);
      const Tensors first = grad({called.results[0].sum() + called.results[1].sum()},
                                 called.arguments, {}, true, true);
      for (const at::Tensor& second : grad({first[0].square().sum() + first[1].sum()},
                                           called.arguments, {}, false, false, true))
        called.seen.note_values("second", second);
    });
  }
}

TEST(Hooks, ARetainedGradientOfAResultThatIsWrittenLater) {
  const Program writes_both = [](const Tensors& in) -> Tensors {
    in[0].mul_(in[1]);
    in[1].add_(in[1]);
    return {};
  };
  expect_as_eager(writes_both, start_of({Kind::Tracked, Kind::Tracked}, {3}),
                  [](const Called& called) {
                    called.arguments[0].retain_grad();
                    called.arguments[1].retain_grad();
                    called.arguments[0].mul_(called.arguments[1]);
                    called.arguments[0].sum().backward();
                    for (const at::Tensor& argument : called.arguments)
                      called.seen.note_values("retained", argument.grad());
                  });
}

TEST(Hooks, ACallsResultsOutliveEachOther) {
  expect_as_eager(two_results, two_leaves, [](const Called& called) {
    at::Tensor sum;
    {
      const at::Tensor kept = called.results[1] * 2;
      double_by_hook(kept, "kept", called.seen);
      sum = kept.sum();
    }
    called.seen.note_values("gradient", grad({sum}, {called.arguments[0]})[0]);
  });
}

}  // namespace
}  // namespace foregrad::testing
