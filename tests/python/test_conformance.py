"""The conformance run finds what it should."""

import faulthandler
import os
import pathlib
import signal
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "conformance"))

import one_call  # noqa: E402
import operators  # noqa: E402
import pool  # noqa: E402
from comparison import Comparison, Difference, compare_memory  # noqa: E402
from copies import Copier  # noqa: E402
from outcome import Outcome, group_of  # noqa: E402
from summary import Summary  # noqa: E402


def test_copies_share_what_the_originals_share():
    base = torch.arange(12.0)
    leaf = torch.ones(2, requires_grad=True)
    tree = [base[2:8:2], base.view(3, 4).t(), (leaf, leaf), 3]
    first, second, (left, right), number = Copier()(tree)
    assert first.stride() == (2,) and first.storage_offset() == 2 and second.stride() == (1, 4)
    assert first.untyped_storage()._cdata == second.untyped_storage()._cdata != base.untyped_storage()._cdata
    assert left is right is not leaf and left.requires_grad and number == 3


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x * 2.5,
        lambda x: (x * 2).double(),
        lambda x: (x * 2).t().contiguous().t(),
        lambda x: (x * 2).detach(),
        lambda x: (x * 2, 1),
        lambda x: x.mul_(2),
    ],
)
def test_what_differs_is_found(wrong, monkeypatch):
    monkeypatch.setattr(one_call, "_compiled", lambda call, fn, reports: _Pretending(wrong, reports))

    def prepare(passed):
        return ((passed[0][0].clone(),), passed[1])

    call = one_call.Call(
        lambda x: x * 2, ((torch.randn(3, 4, requires_grad=True),), {}), prepare=prepare, with_gradients=True
    )
    with pytest.raises(Difference):
        one_call.check(call)


class _Pretending:
    def __init__(self, fn, reports):
        self.fn = fn
        reports.append(self)

    def warm_up(self, *args):
        return True

    def __call__(self, *args):
        return self.fn(*args)


def test_memory_is_compared():
    x, y = torch.ones(2), torch.ones(2)
    with pytest.raises(Difference, match="shares storage"):
        compare_memory([x, x.view(2)], [x, y])
    Comparison().tensors("nan", torch.tensor([float("nan")]), torch.tensor([float("nan")]))


def test_a_call_that_agrees_passes_and_one_that_eager_refuses_is_skipped():
    passed = one_call.Call(lambda x: x.sin(), ((torch.randn(3, requires_grad=True),), {}), with_gradients=True)
    comparison, compiled = one_call.check(passed)
    assert comparison.is_exact and len(compiled.report().specialisations) == 1
    with pytest.raises(one_call.Skip):
        one_call.check(one_call.Call(lambda x: x.sum(7), ((torch.ones(1),), {})))
    with pytest.raises(one_call.Refused, match="depends on the data"):
        one_call.check(one_call.Call(lambda x: x.nonzero(), ((torch.ones(1),), {})))


def test_the_pool_goes_on_behind_a_crash():
    def work(task, first):
        for number in range(first, 4):
            yield number, None
            record = Outcome(task, "function", "float32", number, "crashed").to_json()
            yield number, record
            if task == "dies" and number == 1:
                faulthandler.disable()
                os.kill(os.getpid(), signal.SIGSEGV)
            yield number, {**record, "kind": "passed"}

    summary = Summary()
    pool.run(["lives", "dies"], work, 2, 60, lambda task, *rest: summary.add(("operators", task, "float32"), *rest))
    assert summary.total() == {"passed": 7, "crashed": 1}
    (failing,) = summary.failing
    assert (failing.op, failing.sample) == ("dies", 1) and "SIGSEGV" in failing.reason
    assert not summary.is_clean()


def test_samples_of_the_database_become_calls():
    found = list(operators.calls("add", torch.float32, {"function", "inplace", "out"}))
    assert {variant for variant, *_ in found} == {"function", "inplace", "out", "out, no elements", "out, gaps"}
    for variant, number, _, call in found:
        if number < 2 and variant in ("function", "inplace", "out"):
            one_call.check(call)
    assert not list(operators.calls("add", torch.quint8, {"function"}))


def test_reasons_are_grouped():
    left = group_of("`aten::add.out`: a tensor `f32[2,3]{3,1}` of 6 elements")
    assert left == group_of("`aten::mul.out`: a tensor `f64[1]{1}+2` of 1 elements")
    assert "T" in left and "N elements" in left
