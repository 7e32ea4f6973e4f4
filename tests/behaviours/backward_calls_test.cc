// Backward as the caller runs it: tangents, orders, what is held.
#include <ATen/Context.h>
#include <torch/library.h>

#include "behaviours/callers.h"
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

using torch::autograd::grad;

/// Takes gradients of everything differentiable, with `create_graph`, and then theirs.
void differentiate_twice(const Called& called) {
  Tensors leaves;
  for (const Tensors* tensors : {&called.arguments, &called.kept}) {
    for (const at::Tensor& t : *tensors) {
      if (t.requires_grad() && t.is_leaf()) leaves.push_back(t);
    }
  }
  Tensors roots;
  for (const at::Tensor& result : called.results) {
    if (result.requires_grad()) roots.push_back(result.sum());
  }
  const Tensors first = grad(roots, leaves, {}, true, /*create_graph=*/true, true);
  Tensors next;
  for (size_t i = 0; i < first.size(); ++i) {
    called.seen.note_values("first gradient " + std::to_string(i), first[i]);
    if (first[i].defined() && first[i].requires_grad()) next.push_back(first[i].sum());
  }
  if (next.empty()) return;
  const Tensors second = grad(next, leaves, {}, true, false, true);
  for (size_t i = 0; i < second.size(); ++i)
    called.seen.note_values("second gradient " + std::to_string(i), second[i]);
}

// A function that calls `backward()` itself and returns the gradients runs eagerly: it fills `grad`
// of tensors that are the caller's.
TEST(Behaviours, B003_BackwardInsideTheFunction) {
  expect_refused(
      [](const Tensors& in) -> Tensors {
        (in[0] * in[1]).sum().backward();
        return {in[0].grad(), in[1].grad()};
      },
      start_of({Kind::Leaf, Kind::Leaf}, {3}), "`backward()` inside the function", look_only);
}

// The function computes a gradient itself; its own gradient is right too.
TEST(Behaviours, B002_AGradientTakenInside) {
  const Twin program = [](const Tensors& in) -> Tensors {
    const at::Tensor energy = (in[0].pow(3) * in[1]).sum();
    return grad({energy}, {in[0]}, {}, std::nullopt, /*create_graph=*/true);
  };
  expect_as_eager(
      program, {{.make = start_of({Kind::Leaf, Kind::Leaf}, {3})},
                {.make = start_of({Kind::Leaf, Kind::Leaf}, {3}), .caller = differentiate_twice}});
}

// `grad` inside, with respect to the argument, without a graph of its own.
TEST(Behaviours, B017_GradInsideWithRespectToTheArgument) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor loss = (in[0] * in[0] * in[1]).sum();
        return {grad({loss}, {in[0]})[0] * in[1], in[1] * 2};
      },
      start_of({Kind::Leaf, Kind::Leaf}, {3}));
}

// A saved value that is a view and an output holds nothing alive once the caller lets go.
TEST(Behaviours, B101_ASavedViewThatIsAnOutputIsFreed) {
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages;
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor exp = in[0].exp();
        return {exp.view({3}), exp.sin()};
      },
      start_of(Kind::Leaf, {3}),
      [&](const Called& called) {
        for (const at::Tensor& result : called.results) {
          storages.emplace_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(
              result.storage().unsafeGetStorageImpl()));
        }
        differentiate(called);
      });
  for (const auto& storage : storages) EXPECT_TRUE(storage.expired());
}

// First-order gradients taken with `create_graph` are right, and so are theirs.
TEST(Behaviours, B102_CreateGraph) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0].pow(3) * in[1]}; },
                  start_of({Kind::Leaf, Kind::Leaf}, {3}), differentiate_twice);
}

// One gradient too many, or of another size, is eager's error.
TEST(Behaviours, B103_TheNumberOfIncomingGradientsIsChecked) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors { return {in[0] * 2}; }, start_of(Kind::Leaf, {3}),
      [](const Called& called) {
        called.seen.attempt("two tangents", [&] {
          grad({called.results[0]}, {called.arguments[0]}, {at::ones({3}), at::ones({3})}, true);
        });
        called.seen.attempt("another size", [&] {
          grad({called.results[0]}, {called.arguments[0]}, {at::ones({4})}, true);
        });
      });
}

// An output is a view of the input: its gradient goes past the call.
TEST(Behaviours, B104_TheGradientOfAnAliasGoesToTheInput) {
  for (const Kind kind : {Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          return {in[0].view({3, 2}), in[0] * 3};
        },
        start_of(kind, {2, 3}),
        [](const Called& called) {
          called.results[0].sum().backward({}, true);
          called.results[1].sum().backward();
        });
  }
}

// The other output is a view of the input; backward runs from this one alone.
TEST(Behaviours, B105_BackwardThroughTheOutputThatIsNoAlias) {
  for (const Kind kind : {Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          return {in[0].t(), in[0].sin()};
        },
        start_of(kind, {2, 3}), [](const Called& called) { called.results[1].sum().backward(); });
  }
}

// Deterministic algorithms are on in forward and off in backward, or the other way round.
TEST(Behaviours, B106_DeterministicModeChangesBeforeBackward) {
  for (const bool forward : {false, true}) {
    SCOPED_TRACE(forward);
    const auto set = [](bool on) { at::globalContext().setDeterministicAlgorithms(on, false); };
    expect_as_eager([](const Tensors& in) -> Tensors { return {in[0].cumsum(0) * in[0]}; },
                    [=]() {
                      set(forward);
                      return start_of(Kind::Leaf, {3})();
                    },
                    [=](const Called& called) {
                      set(!forward);
                      differentiate(called);
                    });
    set(false);
  }
}

// The product rule.
TEST(Behaviours, B107_ProductRule) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0] * in[1]}; },
                  start_of({Kind::Leaf, Kind::Leaf}, {3}));
}

// Three outputs, differentiated as one sum.
TEST(Behaviours, B108_ThreeOutputsSummed) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return {in[0] * 2, in[0] + in[1], in[1] * in[1]};
      },
      start_of({Kind::Leaf, Kind::Leaf}, {3}),
      [](const Called& called) {
        (called.results[0] + called.results[1] + called.results[2]).sum().backward();
      });
}

// A random operator beside the identity: the gradient of the identity is ones.
TEST(Behaviours, B109_ARandomOperatorBesideTheIdentity) {
  expect_as_eager([](const Tensors& in) -> Tensors { return {in[0] + at::rand_like(in[0])}; },
                  start_of(Kind::Leaf, {3}));
}

// An input is written, a view of it and a new tensor come back: gradients go through all three.
TEST(Behaviours, B111_GradientsThroughTheEpilogue) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[0].mul_(in[1]);
        return {in[0].view({6}), in[0] * in[0]};
      },
      start_of({Kind::Tracked, Kind::Leaf}, {2, 3}));
}

// A channels-last output gets its tangent as it comes, beside an input that is written and views.
TEST(Behaviours, B115_AChannelsLastOutput) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[1].add_(1);
        return {in[0].to(at::MemoryFormat::ChannelsLast) * 2, in[0].view({-1}), in[1].view({-1})};
      },
      start_of({Kind::Leaf, Kind::Tracked}, {2, 3, 2, 2}),
      [](const Called& called) {
        const at::Tensor tangent =
            at::ones_like(called.results[0]).to(at::MemoryFormat::ChannelsLast);
        called.results[0].backward(tangent);
      });
}

// An output whose elements share memory gets its tangent as it comes.
TEST(Behaviours, B116_AnExpandedOutput) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        return {(in[0] * 2).expand({4, 3}), in[0].sin()};
      },
      start_of(Kind::Leaf, {3}),
      [](const Called& called) {
        grad({called.results[0]}, {called.arguments[0]}, {at::arange(12, at::kFloat).view({4, 3})},
             true);
        differentiate(called);
      });
}

/// A watched tensor, and whether it was alive when the probe last ran.
struct Watch {
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>()};
  bool was_alive = false;
  int probes = 0;
};
Watch& watch() {
  static Watch watched;
  return watched;
}

/// An operator that notes whether the watched tensor is still there.
at::Tensor probe(const at::Tensor& x) {
  watch().was_alive = !watch().tensor.expired();
  ++watch().probes;
  return x.clone();
}

/// Its backward makes a tensor of its gradient, then looks whether the gradient is still there.
struct Probing : torch::autograd::Function<Probing> {
  static at::Tensor forward(torch::autograd::AutogradContext* /*ctx*/, const at::Tensor& x) {
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*ctx*/,
                                                 torch::autograd::variable_list grads) {
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("foregrad_behaviours::probe", "")
                               .typed<at::Tensor(const at::Tensor&)>();
    at::Tensor scaled = grads[0] * 3;
    grads.clear();
    return {op.call(scaled)};
  }
};

/// Runs backward of a compiled model and a loss; the tangent of the model must be gone when the
/// model's backward has used it.
void expect_released(const std::function<at::Tensor(const at::Tensor&)>& loss) {
  torch::Library library(torch::Library::FRAGMENT, "foregrad_behaviours", std::nullopt, __FILE__,
                         __LINE__);
  library.def("probe(Tensor x) -> Tensor");
  library.impl("probe", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(probe)));
  const auto model =
      compile([](const at::Tensor& x) { return Probing::apply(x); }, {.policy = Policy::Refuse});
  const at::Tensor x = leaf({8});
  for (int i = 0; i < 3; ++i) {
    at::Tensor y = model(x);
    y.register_hook([](const at::Tensor& gradient) {
      watch().tensor = {gradient.getIntrusivePtr()};
      return gradient;
    });
    at::Tensor total = loss(y);
    y.reset();
    watch().probes = 0;
    total.backward();
    EXPECT_EQ(watch().probes, 1);
    EXPECT_FALSE(watch().was_alive) << "call " << i;
  }
}

// The incoming tangent of a compiled model is released as soon as its backward has used it:
// compiled loss.
TEST(Behaviours, B113_ATangentFromACompiledLossIsReleased) {
  const auto loss = compile([](const at::Tensor& y) { return (y * y).sum(); });
  expect_released([&](const at::Tensor& y) { return loss(y); });
  EXPECT_EQ(loss.report().eager_calls, 0U);
}

// And with an eager loss.
TEST(Behaviours, B114_ATangentFromAnEagerLossIsReleased) {
  expect_released([](const at::Tensor& y) { return (y * y).sum(); });
  EXPECT_EQ(watch().probes, 1);
}

}  // namespace
}  // namespace foregrad::testing
