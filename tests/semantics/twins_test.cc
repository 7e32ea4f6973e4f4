// Programs that once differed from eager without an error. Each is right now: compiled, or run
// eagerly.
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/generated/variable_factories.h>
#include <torch/nn/modules/dropout.h>

#include "semantics/eager_twin.h"
#include "support/values.h"

namespace foregrad::testing {
namespace {

Tensors sum_backward(const Tensors& tensors) {
  at::Tensor total = at::zeros({});
  for (const auto& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad()) total = total + tensor.sum();
  }
  if (total.requires_grad()) total.backward();
  return {};
}

TEST(Twins, AWriteToAViewArgumentReachesTheBasesHistory) {
  auto base = std::make_shared<at::Tensor>();
  expect_twin(
      [](Tensors in) -> Tensors {
        in[1].mul_(in[0]);
        return {in[1] * 3};
      },
      [base]() -> Tensors {
        auto w = random_leaf({2});
        *base = random_leaf({4}) * 1;
        return {w, base->slice(0, 0, 2)};
      },
      [base](const Tensors&, const Tensors&) -> Tensors {
        base->sum().backward();
        return {base->detach()};
      });
}

TEST(Twins, AWriteToAViewOfALeafIsEagersError) {
  auto base = std::make_shared<at::Tensor>();
  expect_twin(
      [](Tensors in) -> Tensors {
        in[0].mul_(0);
        return {in[0].sum()};
      },
      [base]() -> Tensors {
        *base = random_leaf({3, 2});
        return {base->select(0, 0)};
      },
      [base](const Tensors&, const Tensors&) -> Tensors { return {*base}; });
}

TEST(Twins, AHistoryGainedAfterDetachIsNotLost) {
  expect_twin(
      [](Tensors in) -> Tensors {
        auto d = in[0].detach();
        d.mul_(in[1]);
        return {d};
      },
      []() -> Tensors {
        return {random_leaf({3}), random_leaf({3})};
      },
      [](const Tensors& in, const Tensors& out) { return sum_backward({out[0] * in[1]}); });
}

TEST(Twins, AViewTransposedInPlaceKeepsItsSizes) {
  for (const bool unsqueezed : {false, true}) {
    expect_twin(
        [=](Tensors in) -> Tensors {
          auto v = in[0].view({4, 3});
          return {unsqueezed ? v.unsqueeze_(0) : v.t_()};
        },
        []() -> Tensors { return {random_leaf({12}) * 1}; });
  }
}

TEST(Twins, DropoutOfATransposedTensorDrawsEagersMask) {
  expect_twin([](Tensors in) -> Tensors { return {at::dropout(in[0].t(), 0.5, true)}; },
              []() -> Tensors {
                return {random_leaf({5, 7})};
              },
              [](const Tensors&, const Tensors& out) { return sum_backward(out); });
}

TEST(Twins, ChecksOfDataInsideCompositesAreKept) {
  EXPECT_EQ(expect_twin([](Tensors in) -> Tensors { return {at::linalg_inv(in[0])}; },
                        []() -> Tensors {
                          return {at::zeros({2, 2})};
                        }),
            0u);
  EXPECT_EQ(expect_twin([](Tensors in) -> Tensors { return {at::linalg_cholesky(in[0])}; },
                        []() -> Tensors { return {-at::eye(2)}; }),
            0u);
}

TEST(Twins, AReferenceThatIsGivenAnotherValueIsNotLost) {
  auto fn = [](at::Tensor& out, int& count, const at::Tensor& x) {
    out = x + 1;
    ++count;
  };
  auto compiled = compile(fn);
  at::Tensor out;
  int count = 0;
  for (int i = 0; i < 2; ++i) compiled(out, count, at::ones({2}));
  EXPECT_TRUE(at::equal(out, at::full({2}, 2.0)));
  EXPECT_EQ(count, 2);
  EXPECT_EQ(compiled.report().eager_calls, 2u);
}

TEST(Twins, AnOffsetThatReachesOutsideTheArgument) {
  auto base = std::make_shared<at::Tensor>();
  expect_twin(
      [](Tensors in) -> Tensors {
        in[0].as_strided({2}, {1}, 0).zero_();
        return {};
      },
      [base]() -> Tensors {
        *base = at::ones({6});
        return {base->slice(0, 3, 6)};
      },
      [base](const Tensors&, const Tensors&) -> Tensors { return {*base}; });
}

TEST(Twins, ASeedSetInsideIsSetAtEachCall) {
  EXPECT_EQ(expect_twin(
                [](Tensors in) -> Tensors {
                  torch::manual_seed(3);
                  return {in[0] * at::rand({3})};
                },
                []() -> Tensors { return {random_leaf({3})}; }),
            3u);
}

TEST(Twins, AModeChangedInsideIsChangedAtEachCall) {
  torch::nn::Dropout net(0.5);
  auto compiled = compile(
      [&](const at::Tensor& x) -> at::Tensor {
        net->eval();
        return net(x) * 2;
      },
      {.modules = {net}});
  for (int i = 0; i < 2; ++i) {
    net->train();
    compiled(at::ones({3}));
    EXPECT_FALSE(net->is_training());
  }
}

TEST(Twins, AGradResetInsideIsResetAtEachCall) {
  auto w = random_leaf({2});
  auto compiled = compile(
      [&](const at::Tensor& x) -> at::Tensor {
        w.mutable_grad().reset();
        return (x * w).sum();
      },
      {.tensors = {w}});
  for (int i = 0; i < 3; ++i) {
    compiled(at::ones({2})).backward();
    EXPECT_TRUE(at::equal(w.grad(), at::ones({2})));
  }
}

TEST(Twins, AutocastLeftOnIsRefused) {
  auto compiled = compile([](const at::Tensor& x) -> at::Tensor {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    return x * 2;
  });
  compiled(at::ones({2}));
  EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(compiled.report().eager_calls, 1u);
}

TEST(Twins, ListsOfWrittenTensorsAdvanceVersions) {
  auto fn = [](const Tensors& in) { at::_foreach_add_(in, 1); };
  auto compiled = compile(fn);
  Tensors eager{at::ones({2}), at::ones({3})};
  Tensors got{at::ones({2}), at::ones({3})};
  fn(eager);
  compiled(got);
  for (size_t i = 0; i < 2; ++i) {
    expect_same(got[i], eager[i], "written");
    EXPECT_EQ(got[i]._version(), eager[i]._version());
  }
}

TEST(Twins, ADifferentiatedOutputDoesNotNeedWhatOnlyTheOthersSave) {
  EXPECT_EQ(expect_twin(
                [](Tensors in) -> Tensors {
                  auto t = in[0] * 1;
                  t.sin_();
                  return {t.sum(), (in[0] * in[1]).sum()};
                },
                []() -> Tensors {
                  return {random_leaf({3}), random_leaf({3})};
                },
                [](const Tensors&, const Tensors& out) { return sum_backward({out[1]}); }),
            0u);
}

TEST(Twins, TwoLossesRunBackwardOneAfterTheOther) {
  EXPECT_EQ(expect_twin(
                [](Tensors in) -> Tensors {
                  return {in[0].sin().sum(), in[0].exp().sum()};
                },
                []() -> Tensors { return {random_leaf({3})}; },
                [](const Tensors&, const Tensors& out) -> Tensors {
                  out[0].backward();
                  out[1].backward();
                  EXPECT_THROW(out[1].backward(), c10::Error);
                  return {};
                }),
            0u);
}

TEST(Twins, AHookOfAnUnusedInputDoesNotRun) {
  auto hooked = std::make_shared<int>(0);
  expect_twin([](Tensors in) -> Tensors { return {in[0] * 2}; },
              [hooked]() -> Tensors {
                auto unused = random_leaf({3});
                unused.register_hook([hooked](const at::Tensor& grad) {
                  ++*hooked;
                  return grad * 2;
                });
                return {random_leaf({3}), unused};
              },
              [](const Tensors&, const Tensors& out) { return sum_backward(out); });
  EXPECT_EQ(*hooked, 0);
}

TEST(Twins, APartialBackwardUnderAnotherDefaultDtype) {
  expect_twin(
      [](Tensors in) -> Tensors {
        return {in[0] * at::ones({3}), in[0].exp() * at::zeros({3})};
      },
      []() -> Tensors { return {random_leaf({3})}; },
      [](const Tensors&, const Tensors& out) {
        at::set_default_dtype(caffe2::TypeMeta::Make<double>());
        out[1].sum().backward();
        at::set_default_dtype(caffe2::TypeMeta::Make<float>());
        return Tensors{};
      });
}

TEST(Twins, AWriteToARowOfAnExpandedArgument) {
  expect_twin(
      [](Tensors in) -> Tensors {
        in[0].select(1, 0).add_(1);
        return {in[0] * 2};
      },
      []() -> Tensors {
        return {at::ones({3, 1}).expand({3, 4})};
      });
}

TEST(Twins, SetDataOnACapturedTensorInside) {
  auto t = at::ones({2});
  auto compiled = compile(
      [&](const at::Tensor& x) -> at::Tensor {
        t.set_data(x.detach() * 2);
        return x + t;
      },
      {.tensors = {t}});
  EXPECT_TRUE(at::equal(compiled(at::ones({2})), at::full({2}, 3.0)));
  EXPECT_TRUE(at::equal(t, at::full({2}, 2.0)));
}

TEST(Twins, OneViewReturnedTwiceIsOneTensor) {
  auto compiled = compile([](const at::Tensor& x) -> Tensors {
    auto v = x.view({6});
    return {v, v};
  });
  auto out = compiled(at::ones({2, 3}));
  EXPECT_TRUE(out[0].is_same(out[1]));
}

TEST(Twins, ACallersWriteToAResultThatBackwardReadsThroughAView) {
  expect_twin([](Tensors in) -> Tensors { return {(in[0] * 2).unsqueeze_(0).exp_()}; },
              []() -> Tensors { return {random_leaf({2})}; },
              [](const Tensors&, const Tensors& outputs) -> Tensors {
                {
                  const at::NoGradGuard no_grad;
                  outputs[0].mul_(2);
                }
                EXPECT_THROW(sum_backward(outputs), c10::Error);
                return {};
              });
}

TEST(Twins, AnErrorInBackwardIsNoErrorToInputsThatItDoesNotLeadTo) {
  expect_twin(
      [](Tensors in) -> Tensors {
        const at::Tensor magnitude = in[0].abs();
        in[0].requires_grad_(false).sub_(magnitude);
        return {in[0]};
      },
      []() -> Tensors {
        return {random_leaf({2}), random_leaf({2})};
      },
      [](const Tensors& in, const Tensors& outputs) -> Tensors {
        return torch::autograd::grad({outputs[0].sum()}, {in[1]}, {}, /*retain_graph=*/true,
                                     /*create_graph=*/false, /*allow_unused=*/true);
      });
}

TEST(Twins, AViewThatWasMadeALeafIsGivenAHistory) {
  expect_twin(
      [](Tensors in) -> Tensors {
        const at::Tensor magnitude = in[0].abs();
        in[0].requires_grad_(false).sub_(magnitude);
        return {in[0] * 2};
      },
      []() -> Tensors { return {at::randn({4}).slice(0, 1, 3).requires_grad_()}; },
      [](const Tensors& in, const Tensors&) -> Tensors {
        const at::Tensor base(in[0]._base());
        return {base.detach(), base.grad_fn() ? at::ones({}) : at::zeros({})};
      });
}

TEST(Twins, AComplexViewOfAnOddNumberOfFloatsIsWrittenInPart) {
  expect_twin(
      [](Tensors in) -> Tensors {
        const at::Tensor pairs = at::view_as_complex(in[0]);
        pairs.slice(0, 1, 2).mul_(3);
        const at::Tensor odd = (in[1] * 2).slice(0, 0, 4).view({2, 2});
        at::view_as_complex(odd).slice(0, 0, 1).mul_(pairs);
        return {odd};
      },
      []() -> Tensors {
        return {at::randn({5}).slice(0, 0, 4).view({2, 2}), at::randn({5})};
      });
}

TEST(Twins, AViewOfATensorThatIsDetachedKeepsItsHistory) {
  expect_twin(
      [](Tensors in) -> Tensors {
        const at::Tensor out = in[1].neg();
        in[0].detach_();
        return {out};
      },
      []() -> Tensors {
        const at::Tensor x = random_leaf({2, 2}) * 1;
        return {x, x.select(1, 1)};
      },
      [](const Tensors& in, const Tensors& outputs) -> Tensors {
        return torch::autograd::grad({outputs[0].sum()}, {in[1]}, {}, true, false, true);
      });
}

TEST(Twins, ADetachedBaseIsWrittenBesideAViewThatOverlapsItself) {
  expect_twin(
      [](Tensors in) -> Tensors {
        in[0].copy_(in[0].softmax(0));
        in[1].sin_();
        return {};
      },
      []() -> Tensors {
        const at::Tensor x = random_leaf({18}) * 1;
        return {x.detach(), x.as_strided({4, 4}, {2, 2}, 4)};
      });
}

TEST(Twins, AGradientOfOneResultWithRespectToAnother) {
  const Program program = [](Tensors in) -> Tensors {
    const at::Tensor a = in[0].exp();
    const at::Tensor b = a.sin();
    return {b, a, b.cos(), in[0] * 2};
  };
  const MakeState make = []() -> Tensors { return {random_leaf({3})}; };
  EXPECT_EQ(expect_twin(program, make,
                        [](const Tensors& in, const Tensors& outputs) -> Tensors {
                          Tensors all;
                          for (const at::Tensor& of : outputs) {
                            const Tensors grads = torch::autograd::grad(
                                {of.sum()}, {outputs[0], outputs[1], outputs[2], in[0]}, {}, true,
                                false, true);
                            all.insert(all.end(), grads.begin(), grads.end());
                          }
                          return all;
                        }),
            0U);
}

TEST(Twins, HooksOnAResultSeeWhatFlowsThroughItFromAnother) {
  const Program program = [](Tensors in) -> Tensors {
    const at::Tensor hidden = in[0].exp();
    return {hidden, hidden.sin()};
  };
  EXPECT_EQ(expect_twin(
                program, []() -> Tensors { return {random_leaf({3})}; },
                [](const Tensors&, const Tensors& outputs) -> Tensors {
                  outputs[0].retain_grad();
                  auto seen = std::make_shared<Tensors>();
                  outputs[0].register_hook([seen](const at::Tensor& g) {
                    seen->push_back(g.detach().clone());
                    return g * 2;
                  });
                  outputs[1].sum().backward();
                  seen->push_back(outputs[0].grad().clone());
                  return *seen;
                }),
            0U);
}

TEST(Twins, AWrittenStateLeadsToTheLossThatIsComputedFromIt) {
  const Program program = [](Tensors in) -> Tensors {
    in[1].mul_(in[0]);
    const at::Tensor part = in[1].slice(0, 0, 2);
    return {(in[1] * 3).sum(), part, part.exp()};
  };
  EXPECT_EQ(expect_twin(
                program,
                []() -> Tensors {
                  return {random_leaf({3}), random_leaf({3}) * 1};
                },
                [](const Tensors& in, const Tensors& outputs) -> Tensors {
                  Tensors all = torch::autograd::grad({outputs[0]}, {in[1], in[0]}, {}, true);
                  const Tensors more = torch::autograd::grad({outputs[2].sum()},
                                                             {outputs[1], in[1], in[0]}, {}, true);
                  all.insert(all.end(), more.begin(), more.end());
                  return all;
                }),
            0U);
}

TEST(Twins, ALeafThatTheFunctionMakesGetsWhatOtherResultsGiveIt) {
  EXPECT_EQ(expect_twin(
                [](Tensors in) -> Tensors {
                  const at::Tensor weight = at::full({3}, 2.0).requires_grad_();
                  return {weight, weight * in[0]};
                },
                []() -> Tensors { return {random_leaf({3})}; },
                [](const Tensors&, const Tensors& outputs) -> Tensors {
                  outputs[1].sum().backward();
                  return {outputs[0].grad()};
                }),
            0U);
}

// `torch::ones` gives another object than the operator in it gave.
TEST(Twins, TensorsMadeByTheFactoriesOfTorch) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const at::Tensor ones = torch::ones({2});
        const at::Tensor leaf = torch::full({2}, 3.0, torch::requires_grad());
        const at::Tensor zeros = torch::zeros_like(in[0]);
        zeros.add_(1);
        return {ones, leaf, torch::arange(4), torch::empty({0}), zeros, leaf * in[0]};
      },
      start_of(Kind::Leaf, {2}));
}

}  // namespace
}  // namespace foregrad::testing
