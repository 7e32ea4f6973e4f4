// Hooks that the function registers on its tensors, and gradients that it has them retain.
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>

#include <memory>
#include <string>

#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

using torch::autograd::grad;

at::Tensor doubled(const at::Tensor& gradient) { return gradient * 2; }
at::Tensor clamped(const at::Tensor& gradient) { return gradient.clamp(-0.5, 0.5); }

const MakeStart one_leaf = start_of(Kind::Leaf, {3});
const MakeStart leaf_and_tracked = start_of({Kind::Leaf, Kind::Tracked}, {3});

/// First and second gradients of the sum of the results.
void differentiate_twice(const Called& called) {
  at::Tensor sum = at::zeros({});
  for (const at::Tensor& result : called.results) sum = sum + result.square().sum();
  const Tensors first = grad({sum}, called.arguments, {}, true, true, true);
  at::Tensor squares = at::zeros({});
  for (const at::Tensor& gradient : first) {
    called.seen.note_values("first", gradient);
    if (gradient.defined()) squares = squares + gradient.square().sum();
  }
  if (!squares.requires_grad()) return;
  for (const at::Tensor& second : grad({squares}, called.arguments, {}, false, false, true))
    called.seen.note_values("second", second);
}

/// With hooks of the caller's own, and gradients that are retained and taken at each result.
void look_closely(const Called& called) {
  Tensors came(called.results.size());
  for (size_t i = 0; i < came.size(); ++i) {
    const at::Tensor& result = called.results[i];
    if (!result.requires_grad()) continue;
    result.register_hook([&came, i](const at::Tensor& gradient) {
      came[i] = gradient;
      return gradient + 1;
    });
    if (!result.is_leaf()) result.retain_grad();
  }
  differentiate(called);
  for (size_t i = 0; i < came.size(); ++i) {
    called.seen.note_values("what comes to result " + std::to_string(i), came[i]);
    called.seen.note_values("what result " + std::to_string(i) + " retains",
                            called.results[i].grad());
  }
}

void expect_all_as_eager(const Program& program, const MakeStart& make) {
  for (const Caller& caller :
       {Caller(differentiate), Caller(differentiate_twice), Caller(look_closely)})
    expect_as_eager(program, make, caller);
}

TEST(HooksInside, OnATensorInside) {
  expect_all_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor y = in[0] * in[0];
        y.register_hook(doubled);
        y.register_hook(clamped);
        y.register_hook([](const at::Tensor&) { return at::Tensor(); });
        return {(y * 3).square()};
      },
      one_leaf);
}

TEST(HooksInside, OnAResult) {
  expect_all_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor y = in[0] * in[0];
        y.register_hook(clamped);
        y.register_hook(doubled);
        return {y, y * 3, in[0] * 5};
      },
      one_leaf);
}

TEST(HooksInside, OnAHistoryThatAWriteReplacesTheyAreRefused) {
  expect_refused(
      [](const Tensors& in) -> Tensors {
        at::Tensor y = in[0].square();
        y.register_hook(clamped);
        y.mul_(in[0]);
        return {y};
      },
      one_leaf, "registered after the write");
}

TEST(HooksInside, AHookReadsTensors) {
  const at::Tensor factor = at::full({3}, 0.5);
  expect_all_as_eager(
      [&](const Tensors& in) -> Tensors {
        const at::Tensor inner = in[0] * 3;
        const at::Tensor y = in[0] * in[1];
        y.register_hook([inner](const at::Tensor& gradient) { return gradient * inner; });
        const at::Tensor z = y * 2;
        z.register_hook(
            [x = in[0], factor](const at::Tensor& gradient) { return gradient * (x + factor); });
        return {z};
      },
      leaf_and_tracked);
}

TEST(HooksInside, AHookReadsResultsAndItsOwnTensor) {
  expect_all_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor inner = in[0].square();
        const at::Tensor y = inner * in[0];
        const at::Tensor mask = y > 0.2;
        y.register_hook(
            [inner, mask](const at::Tensor& gradient) { return gradient * inner * mask; });
        y.register_hook([own = y.detach()](const at::Tensor& gradient) { return gradient * own; });
        return {y, y.square()};
      },
      one_leaf);
}

TEST(HooksInside, ATensorIsReadAsItIsThen) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor y = in[0] * 2;
        y.register_hook([x = in[1]](const at::Tensor& gradient) { return gradient * x; });
        return {y.square()};
      },
      start_of({Kind::Leaf, Kind::Plain}, {3}),
      [](const Called& called) {
        called.arguments[1].add_(1);
        differentiate(called);
      });
}

TEST(HooksInside, GradientsTakenInside) {
  expect_all_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor y = in[0] * in[0];
        y.register_hook(doubled);
        const at::Tensor z = y.square();
        const at::Tensor gradient = grad({z.sum()}, {in[0]}, {}, true, true)[0];
        return {gradient, z};
      },
      one_leaf);
}

TEST(HooksInside, BetweenResultsThatLeadToEachOther) {
  expect_all_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor y = in[0].square();
        y.register_hook(clamped);
        const at::Tensor z = y * 3;
        return {z, z * y};
      },
      one_leaf);
}

TEST(HooksInside, RetainedGradients) {
  const Caller caller = [](const Called& called) {
    differentiate(called);
    for (const Tensors& list : {called.results, called.arguments}) {
      for (const at::Tensor& tensor : list) {
        EXPECT_TRUE(tensor.is_leaf() || tensor.retains_grad());
        called.seen.note_values("retained", tensor.grad());
      }
    }
  };
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor unseen = in[0] * in[1];
        unseen.retain_grad();
        const at::Tensor y = unseen.square();
        y.register_hook(doubled);
        y.retain_grad();
        in[0].retain_grad();
        in[1].retain_grad();
        in[1].mul_(2);
        return {y};
      },
      leaf_and_tracked, caller);
}

TEST(HooksInside, ARemovedHook) {
  expect_all_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor y = in[0] * in[0];
        const unsigned place = y.register_hook(doubled);
        y.register_hook(clamped);
        y.remove_hook(place);
        return {y.square()};
      },
      one_leaf);
}

TEST(HooksInside, OneThatNoBackwardComesToIsNotCalled) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor factor = at::full({3}, 3);
        const at::Tensor y = in[0].square();
        // It refers to what is gone after the call.
        y.register_hook([&factor](const at::Tensor& gradient) { return gradient * factor; });
        return {grad({y.sum()}, {in[0]})[0]};
      },
      one_leaf);
}

TEST(HooksInside, OnALeafTheyAreRefused) {
  expect_refused(
      [](const Tensors& in) -> Tensors {
        in[0].register_hook(doubled);
        return {in[0] * 2};
      },
      one_leaf, "another one joins it at each call");
  const at::Tensor weight = leaf({3});
  auto compiled = compile(
      [&](const at::Tensor& x) {
        const at::Tensor y = x * weight;
        weight.register_hook(doubled);
        return y;
      },
      {.tensors = {weight}});
  compiled(leaf({3}));  // runs eagerly
  EXPECT_EQ(compiled.report().eager_calls, 1U);
  EXPECT_EQ(weight.register_hook(doubled), 1U);  // one is there: the trace's is gone
}

TEST(HooksInside, OnArgumentsAndViewsTheyAreRefused) {
  const Program on_argument = [](const Tensors& in) -> Tensors {
    in[0].register_hook(doubled);
    return {in[0] * 3};
  };
  expect_refused(on_argument, start_of(Kind::Tracked, {3}), "is on an argument or on a view");
  const Program on_view = [](const Tensors& in) -> Tensors {
    const at::Tensor y = in[0] * 2;
    const at::Tensor row = y[0];
    row.register_hook(doubled);
    return {y, row * 2};
  };
  expect_refused(on_view, one_leaf, "is on an argument or on a view");
}

TEST(HooksInside, OnNodesTheyAreRefused) {
  struct PassOn : torch::autograd::FunctionPostHook {
    Tensors operator()(const Tensors& gradients, const Tensors& /*grads*/) override {
      return gradients;
    }
  };
  expect_refused(
      [](const Tensors& in) -> Tensors {
        const at::Tensor y = in[0] * 2;
        y.grad_fn()->add_post_hook(std::make_unique<PassOn>());
        return {y * 3};
      },
      one_leaf, "on an autograd node");
}

TEST(HooksInside, AGradientThatIsStoredOutsideIsOnlyAStandIn) {
  at::Tensor stored;
  auto compiled = compile([&stored](const at::Tensor& x) {
    const at::Tensor y = x * 2;
    y.register_hook([&stored](const at::Tensor& gradient) {
      if (gradient.defined()) stored = gradient;
      return gradient;
    });
    return y.square();
  });
  const at::Tensor x = leaf({3});
  compiled(x).sum().backward();
  ASSERT_TRUE(stored.defined());
  EXPECT_ANY_THROW(stored + 1);
  EXPECT_ANY_THROW(stored.sum().item<float>());
}

TEST(HooksInside, RecordingAgainTellsHooksApart) {
  double factor = 2;
  int count = 1;
  auto compiled = compile([&](const at::Tensor& x) {
    const at::Tensor y = x * 3;
    for (int i = 0; i < count; ++i)
      y.register_hook([factor](const at::Tensor& gradient) { return gradient * factor; });
    return y.square();
  });
  const at::Tensor x = at::ones({2}).requires_grad_();
  const auto gradient = [&] { return grad({compiled(x).sum()}, {x})[0][0].item<double>(); };
  EXPECT_EQ(gradient(), 36);
  factor = 3;
  EXPECT_EQ(gradient(), 54);  // call 2 records again
  compiled.invalidate();
  EXPECT_EQ(gradient(), 54);
  count = 2;
  EXPECT_EQ(gradient(), 162);
}

TEST(HooksInside, TheyCastAsTheBackwardDoes) {
  const at::Tensor weight = leaf({3, 3});
  auto eager = [&](const at::Tensor& x) {
    const at::Tensor y = x * 2;
    y.register_hook([weight](const at::Tensor& gradient) { return gradient.mm(weight); });
    return y.square();
  };
  auto compiled = compile(eager, {.tensors = {weight}, .policy = Policy::Refuse});
  const at::Tensor x = leaf({3, 3});
  const auto gradient = [&](const auto& fn) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const at::Tensor result = fn(x);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return grad({result.sum()}, {x})[0];
  };
  EXPECT_TRUE(at::equal(gradient(compiled), gradient(eager)));
}

TEST(HooksInside, AHookOfAResultThatReadsItDoesNotKeepItAlive) {
  struct Holder {
    at::Tensor result;
  };
  auto holder = std::make_shared<Holder>();
  auto compiled = compile([holder](const at::Tensor& x) {
    const at::Tensor y = x * 2;
    holder->result = y;
    y.register_hook([holder](const at::Tensor& gradient) { return gradient * holder->result; });
    return y;
  });
  const at::Tensor x = leaf({3});
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> result = [&] {
    const at::Tensor y = compiled(x);
    y.sum().backward();
    EXPECT_TRUE(at::equal(x.grad(), y.detach() * 2));
    return c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>(y.getIntrusivePtr());
  }();
  EXPECT_TRUE(result.expired());
  EXPECT_EQ(compiled.report().eager_calls, 0U);
  holder->result.reset();
}

}  // namespace
}  // namespace foregrad::testing
