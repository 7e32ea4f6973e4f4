// Custom autograd functions inside the compiled function: their own backward is kept.
#include <stdexcept>

#include "support/as_eager.h"
#include "support/values.h"

namespace foregrad::testing {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::grad;
using torch::autograd::variable_list;

/// As in eager, and without falling back.
void expect_compiled(const Program& program, MakeStart make, Caller caller = differentiate) {
  expect_as_eager(program, std::move(make), std::move(caller));
}

/// A backward that is not the derivative of forward, so that no other can take its place.
struct Reversed : torch::autograd::Function<Reversed> {
  static at::Tensor forward(AutogradContext* /*ctx*/, const at::Tensor& x) { return x * 2; }
  static variable_list backward(AutogradContext* /*ctx*/, const variable_list& grads) {
    return {grads[0] * -5};
  }
};

TEST(CustomFunctions, KeepsItsOwnBackward) {
  expect_compiled([](const Tensors& in) -> Tensors { return {Reversed::apply(in[0])}; },
                  start_of(Kind::Leaf, {3}));
  expect_compiled(
      [](const Tensors& in) -> Tensors { return {Reversed::apply(in[0] * 0.5) * in[0]}; },
      start_of(Kind::Tracked, {3, 2}));
}

TEST(CustomFunctions, OneFollowsAnother) {
  expect_compiled(
      [](const Tensors& in) -> Tensors { return {Reversed::apply(Reversed::apply(in[0]))}; },
      start_of(Kind::Leaf, {3}));
}

TEST(CustomFunctions, WithoutGradientsOnlyItsForwardIsThere) {
  expect_compiled([](const Tensors& in) -> Tensors { return {Reversed::apply(in[0]) + 1}; },
                  start_of(Kind::Plain, {3}));
  expect_compiled(
      [](const Tensors& in) -> Tensors {
        torch::NoGradGuard no_grad;
        return {Reversed::apply(in[0]) + 1};
      },
      start_of(Kind::Leaf, {3}));
}

struct Itself : torch::autograd::Function<Itself> {
  static at::Tensor forward(AutogradContext* /*ctx*/, const at::Tensor& x) { return x; }
  static variable_list backward(AutogradContext* /*ctx*/, const variable_list& grads) {
    return {-grads[0]};
  }
};

TEST(CustomFunctions, ThatGivesItsInput) {
  expect_compiled(
      [](const Tensors& in) -> Tensors { return {Itself::apply(in[0] * 2) * 3 + in[0]}; },
      start_of(Kind::Leaf, {3}));
  expect_compiled([](const Tensors& in) -> Tensors { return {Itself::apply(in[0]) * 3}; },
                  start_of(Kind::Leaf, {3}));
}

TEST(CustomFunctions, AViewThatItGivesIsReturned) {
  const Program itself = [](const Tensors& in) -> Tensors { return {Itself::apply(in[0])}; };
  for (const Kind kind : {Kind::Plain, Kind::Leaf, Kind::Tracked})
    expect_compiled(itself, start_of(kind, {3}));
  expect_compiled(itself, start_of(Kind::Tracked, {3}), [](const Called& called) {
    EXPECT_THROW(called.results[0].mul_(2), c10::Error);
    called.results[0].sum().backward();
  });
  expect_compiled(
      [](const Tensors& in) -> Tensors {
        auto h = in[0] * 2;
        return {Itself::apply(h), h, Itself::apply(in[0])};
      },
      start_of(Kind::Leaf, {3}));
}

struct SavedInput : torch::autograd::Function<SavedInput> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, double factor) {
    ctx->save_for_backward({x});
    ctx->saved_data["factor"] = factor;
    return x.pow(3) * factor;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto x = ctx->get_saved_variables()[0];
    return {grads[0] * x * x * ctx->saved_data["factor"].toDouble(), at::Tensor()};
  }
};

struct SavedOutput : torch::autograd::Function<SavedOutput> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x) {
    auto y = x.exp();
    ctx->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {grads[0] * ctx->get_saved_variables()[0] * 0.5};
  }
};

const Caller twice_differentiated = [](const Called& called) {
  const auto& x = called.arguments[0];
  const auto y = called.results[0];
  const auto first = grad({y}, {x}, {at::full_like(y, 0.5)}, true, true)[0];
  called.seen.note_values("first", first);
  const auto second = grad({(first * first).sum()}, {x}, {}, true, true)[0];
  called.seen.note_values("second", second);
  called.seen.note_values("third", grad({second.sum()}, {x}, {}, true)[0]);
};

TEST(CustomFunctions, GradientsOfGradientsGoThroughWhatItSaved) {
  expect_compiled([](const Tensors& in) -> Tensors { return {SavedInput::apply(in[0], 0.5)}; },
                  start_of(Kind::Leaf, {3}), twice_differentiated);
  expect_compiled([](const Tensors& in) -> Tensors { return {SavedOutput::apply(in[0] * 0.5)}; },
                  start_of(Kind::Leaf, {3}), twice_differentiated);
}

TEST(CustomFunctions, AGradientIsTakenThroughItInside) {
  const Program program = [](const Tensors& in) -> Tensors {
    const auto y = SavedInput::apply(in[0], 2.0);
    const auto g = grad({y.sum()}, {in[0]}, {}, true, true)[0];
    return {g * g + y};
  };
  expect_compiled(program, start_of(Kind::Leaf, {3}));
}

TEST(CustomFunctions, WhatItSavedIsWrittenLater) {
  expect_compiled(
      [](const Tensors& in) -> Tensors {
        auto h = in[0] * 2;
        auto y = SavedInput::apply(h, 1.0);
        h.add_(1);
        return {y + h};
      },
      start_of(Kind::Leaf, {3}),
      [](const Called& called) {
        called.seen.attempt("backward", [&] { called.results[0].sum().backward(); });
      });
}

struct Stashed : torch::autograd::Function<Stashed> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& scale) {
    ctx->saved_data["scale"] = scale;
    return x * scale;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {grads[0] * ctx->saved_data["scale"].toTensor(), at::Tensor()};
  }
};

TEST(CustomFunctions, WhatItStashedIsReadAsItIsInBackward) {
  expect_compiled([](const Tensors& in) -> Tensors { return {Stashed::apply(in[0], in[1])}; },
                  start_of({Kind::Leaf, Kind::Plain}, {3}),
                  [](const Called& called) {
                    called.arguments[1].mul_(3);
                    called.results[0].sum().backward();
                  });
  expect_compiled(
      [](const Tensors& in) -> Tensors {
        auto scale = in[1] * 2;
        auto y = Stashed::apply(in[0], scale);
        scale.add_(1);
        return {y};
      },
      start_of({Kind::Leaf, Kind::Plain}, {3}));
}

struct Pair : torch::autograd::Function<Pair> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& y) {
    ctx->save_for_backward({x, y});
    return {x * y, x + y};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    return {grads[0] * saved[1] + 2 * grads[1], grads[0] * saved[0] + 3 * grads[1]};
  }
};

TEST(CustomFunctions, OfTwoResultsOneHasNoTangent) {
  const Program both = [](const Tensors& in) -> Tensors { return Pair::apply(in[0], in[1]); };
  expect_compiled(both, start_of({Kind::Leaf, Kind::Leaf}, {3}));
  expect_compiled(both, start_of({Kind::Leaf, Kind::Leaf}, {3}),
                  [](const Called& called) { called.results[0].sum().backward(); });
  expect_compiled(both, start_of({Kind::Leaf, Kind::Plain}, {3}),
                  [](const Called& called) { called.results[1].sum().backward(); });
  expect_compiled(
      [](const Tensors& in) -> Tensors { return {Pair::apply(in[0], in[1])[1] * in[0]}; },
      start_of({Kind::Leaf, Kind::Leaf}, {3}));
}

TEST(CustomFunctions, OneTensorPassedTwice) {
  expect_compiled([](const Tensors& in) -> Tensors { return {Pair::apply(in[0], in[0])[0].sum()}; },
                  start_of(Kind::Leaf, {3}), twice_differentiated);
}

struct WithIndices : torch::autograd::Function<WithIndices> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x) {
    auto [values, indices] = x.max(0);
    ctx->mark_non_differentiable({indices});
    ctx->save_for_backward({indices, x});
    return {values, indices};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    return {at::zeros_like(saved[1]).scatter(0, saved[0].unsqueeze(0), grads[0].unsqueeze(0) * 2)};
  }
};

TEST(CustomFunctions, AResultThatIsNotDifferentiable) {
  expect_compiled([](const Tensors& in) -> Tensors { return WithIndices::apply(in[0]); },
                  start_of(Kind::Leaf, {3, 2}));
}

struct Doubling : torch::autograd::Function<Doubling> {
  static at::Tensor forward(AutogradContext* ctx, at::Tensor x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext* /*ctx*/, const variable_list& grads) {
    return {grads[0] * 7};
  }
};

TEST(CustomFunctions, ThatWritesItsInput) {
  expect_compiled(
      [](const Tensors& in) -> Tensors {
        auto h = in[0] * 3;
        Doubling::apply(h);
        return {h.sin(), h};
      },
      start_of(Kind::Leaf, {3}));
  expect_compiled([](const Tensors& in) -> Tensors { return {Doubling::apply(in[0]) * 2}; },
                  start_of(Kind::Tracked, {3}));
}

TEST(CustomFunctions, OfACapturedLeaf) {
  const auto w = at::full({3}, 2.0).requires_grad_();
  const CompileOptions options{.tensors = {w}, .policy = Policy::Refuse};
  const auto fn = [w](const at::Tensor& x) {
    return SavedInput::apply(w, 1.0) * x + Reversed::apply(x);
  };
  const auto compiled = compile(fn, options);
  const auto x = at::full({3}, 1.5).requires_grad_();
  const auto expected = grad({fn(x).sum()}, {x, w});
  const auto y = compiled(x);
  EXPECT_TRUE(at::equal(y, fn(x)));
  const auto got = grad({y.sum()}, {x, w});
  EXPECT_TRUE(at::equal(got[0], expected[0]));
  EXPECT_TRUE(at::equal(got[1], expected[1]));
}

struct Noisy : torch::autograd::Function<Noisy> {
  static at::Tensor forward(AutogradContext* /*ctx*/, const at::Tensor& x) { return x.clone(); }
  static variable_list backward(AutogradContext* /*ctx*/, const variable_list& grads) {
    torch::NoGradGuard no_grad;
    auto noise = at::rand_like(grads[0]);
    noise.mul_(2);
    return {grads[0] + noise};
  }
};

TEST(CustomFunctions, BackwardDrawsRandomNumbers) {
  expect_compiled([](const Tensors& in) -> Tensors { return {Noisy::apply(in[0] * 2)}; },
                  start_of(Kind::Leaf, {3}));
}

TEST(CustomFunctions, AViewOfItsResultIsReturned) {
  expect_compiled(
      [](const Tensors& in) -> Tensors {
        return {Reversed::apply(in[0]).view({6}), in[0] * 2};
      },
      start_of(Kind::Leaf, {3, 2}));
}

/// Adds ten to a buffer when backward runs.
struct Counting : torch::autograd::Function<Counting> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& buffer) {
    ctx->saved_data["buffer"] = buffer;
    buffer.add_(1);
    return x * 2;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor buffer = ctx->saved_data["buffer"].toTensor();
    buffer.add_(10);
    return {grads[0] * buffer, at::Tensor()};
  }
};

TEST(CustomFunctions, BackwardWritesABuffer) {
  const Program program = [](const Tensors& in) -> Tensors {
    return {Counting::apply(in[0], in[1])};
  };
  const MakeStart make = [] { return Start{{leaf({3}), at::zeros({})}}; };
  expect_compiled(program, make);
  expect_compiled(program, make, [](const Called& called) {
    const auto& y = called.results[0];
    called.arguments[1].mul_(5);  // what backward finds is what is there then
    called.seen.note_values("first", grad({y.sum()}, {called.arguments[0]}, {}, true)[0]);
    called.seen.note_values("second", grad({y.sum()}, {called.arguments[0]})[0]);
  });
  // With a history the gradients are right, and say why they have no derivative.
  expect_compiled(program, make, [](const Called& called) {
    const auto g = grad({called.results[0].sum()}, {called.arguments[0]}, {}, true, true)[0];
    called.seen.note_values("gradient", g);
  });
}

/// Doubles its incoming gradient in place.
struct Doubling2 : torch::autograd::Function<Doubling2> {
  static at::Tensor forward(AutogradContext* /*ctx*/, const at::Tensor& x) { return x.clone(); }
  static variable_list backward(AutogradContext* /*ctx*/, const variable_list& grads) {
    return {grads[0].mul_(2) + 1};
  }
};

TEST(CustomFunctions, BackwardWritesItsTangent) {
  const Program program = [](const Tensors& in) -> Tensors { return {Doubling2::apply(in[0])}; };
  expect_compiled(program, start_of(Kind::Leaf, {3}), [](const Called& called) {
    const at::Tensor tangent = at::full({3}, 3.0);
    called.seen.note_values("gradient",
                            grad({called.results[0]}, {called.arguments[0]}, {tangent})[0]);
    called.seen.note_values("tangent", tangent);
    called.seen.note("version", std::to_string(tangent._version()));
  });
  expect_compiled(
      [](const Tensors& in) -> Tensors { return {Doubling2::apply(in[0]) * in[0] + in[0]}; },
      start_of(Kind::Leaf, {3}));
}

/// Writes a view of what it kept.
struct WritingAView : torch::autograd::Function<WritingAView> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& buffer) {
    ctx->saved_data["buffer"] = buffer;
    return x.clone();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    ctx->saved_data["buffer"].toTensor()[0].fill_(7);
    return {grads[0], at::Tensor()};
  }
};

TEST(CustomFunctions, BackwardWritesAViewOfABuffer) {
  expect_refused([](const Tensors& in) -> Tensors { return {WritingAView::apply(in[0], in[1])}; },
                 [] {
                   return Start{{leaf({3}), at::zeros({3})}};
                 },
                 "does more to a tensor");
}

struct Throwing : torch::autograd::Function<Throwing> {
  static at::Tensor forward(AutogradContext* /*ctx*/, const at::Tensor& x) { return x.clone(); }
  static variable_list backward(AutogradContext* /*ctx*/, const variable_list& /*grads*/) {
    throw std::out_of_range("mine");
  }
};

TEST(CustomFunctions, ABackwardThatThrowsRunsEagerly) {
  const auto compiled = compile([](const at::Tensor& x) { return Throwing::apply(x) * 2; });
  const auto x = at::ones({3}).requires_grad_();
  const auto y = compiled(x);
  EXPECT_THROW(y.sum().backward(), std::out_of_range);
  EXPECT_EQ(compiled.report().eager_calls, 1U);
}

// ---- found by the fuzzer

TEST(CustomFunctions, AViewThatItReadIsNoLongerALeaf) {
  expect_compiled(
      [](const Tensors& in) -> Tensors {
        const at::Tensor whole = in[0].detach();
        const at::Tensor part = whole.select(-1, 0);
        whole.sub_(in[0]);
        SavedOutput::apply(part);
        return {part};
      },
      start_of(Kind::Leaf, {2}));
  expect_compiled(
      [](const Tensors& in) -> Tensors {
        in[0].narrow(0, 1, 1).copy_(in[1].slice(0, 0, 1));
        Itself::apply(in[0]);
        return {};
      },
      []() -> Start {
        const at::Tensor base = plain({11});
        return {
            .arguments = {base.as_strided({3, 3}, {3, 1}), leaf({2, 3})},
            .kept = {base},
        };
      });
}

TEST(CustomFunctions, AViewThatItGaveIsOfNoUseOnceItsBaseIsWritten) {
  expect_compiled(
      [](const Tensors& in) -> Tensors {
        const at::Tensor h = in[0].clone();
        const at::Tensor same = Itself::apply(h);
        h.copy_(in[0]);
        return {h, same};
      },
      start_of(Kind::Leaf, {3}),
      [](const Called& called) {
        const auto& x = called.arguments[0];
        const at::Tensor tangent = at::ones({3}).requires_grad_();
        const auto first = grad({called.results[0]}, {x}, {tangent}, true, true)[0];
        called.seen.note_values("first", first);
        called.seen.note_values("second", grad({first}, {tangent}, {at::full({3}, 2.)})[0]);
      });
}

TEST(CustomFunctions, SavesOneOfSeveralViews) {
  expect_compiled(
      [](const Tensors& in) -> Tensors {
        return {SavedInput::apply(in[0].chunk(3, 0)[0], 2.), in[0].clamp(0, 1)};
      },
      start_of(Kind::Leaf, {3}), [](const Called& called) { called.results[0].sum().backward(); });
}

struct Product : torch::autograd::Function<Product> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& y) {
    ctx->save_for_backward({x, y});
    return x * y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    return {grads[0] * saved[1], grads[0] * saved[0]};
  }
};

// The node of a view goes when its base is written, and that of another tensor may come to lie
// where it was.
TEST(CustomFunctions, TakeWhatComesOfAViewThatGotAnotherHistory) {
  expect_compiled(
      [](const Tensors& in) -> Tensors {
        const at::Tensor x = in[0] * 1;
        const at::Tensor view = x.unsqueeze(1);
        x.mul_(2);
        const at::Tensor sine = view.sin();
        return {Product::apply(sine, sine - 2)};
      },
      [] { return Start{{leaf({4})}}; });
}

}  // namespace
}  // namespace foregrad::testing
