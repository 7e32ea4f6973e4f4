"""One call, eager and compiled, and what both left behind."""

import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

import foregrad
from comparison import Comparison, Difference, compare_memory
from copies import Copier
from outcome import one_line

_SEED = 20240


class Skip(Exception):
    """Eager itself throws."""


class Refused(Exception):
    """Foregrad does not compile the call."""


@dataclass
class Call:
    """A function and the arguments of one call of it. `prepare` makes of fresh copies of `arguments` what is passed:
    a non-leaf for an in-place variant."""

    fn: Any
    arguments: tuple  # (args, kwargs)
    prepare: Any = None
    process: Any = None  # of the result, before gradients are taken
    with_gradients: bool = False
    modules: tuple = ()  # a module for eager and one for compiled; `fn` takes it first
    tolerances: dict = field(default_factory=dict)
    compares_values: bool = True


@dataclass
class Left:
    """What a call left."""

    passed: Any
    result: Any
    leaves: list
    gradients: Any = None
    gradient_error: str = ""


def check(call):
    """Returns the comparison and the report of a call that agrees. Raises `Skip`, `Refused` or `Difference`."""
    eager = _run(call, 0, lambda fn: fn)
    reports = []
    compiled = _run(call, 1, lambda fn: _compiled(call, fn, reports))
    comparison = Comparison(call.tolerances, compares_values=call.compares_values)
    comparison.trees("result", eager.result, compiled.result)
    comparison.trees("argument after the call", eager.passed, compiled.passed)
    versions = [[t._version for t in _tensors(left.passed)] for left in (eager, compiled)]
    if versions[0] != versions[1]:
        raise Difference(f"versions of arguments: eager {versions[0]}, compiled {versions[1]}")
    compare_memory(*([*_tensors(left.passed), *_tensors(left.result)] for left in (eager, compiled)))
    _compare_state(call, comparison)
    _compare_gradients(eager, compiled, comparison)
    return comparison, reports[0]


def _run(call, which, wrap):
    copier = Copier()
    passed = copier(call.arguments)
    leaves = [t for t in _tensors(passed) if t.requires_grad]
    if call.modules:
        leaves += [p for p in call.modules[which].parameters() if p.requires_grad]
    torch.manual_seed(_SEED)
    if call.prepare:
        passed = call.prepare(passed)
    fn = call.modules[which] if call.modules else call.fn
    args, kwargs = passed
    is_eager = which == 0
    target = wrap(fn)
    try:
        if not is_eager:
            _warm_up(target, args, kwargs)
        torch.manual_seed(_SEED + 1)
        result = target(*args, **kwargs)
    except Refused:
        raise
    except Exception as error:
        if is_eager:
            raise Skip(one_line(error)) from None
        raise Difference(f"compiled raises, eager doesn't: {one_line(error)}") from None
    left = Left(passed, result, leaves)
    if call.with_gradients and leaves:
        _take_gradients(call, left)
    return left


def _compiled(call, fn, reports):
    made = foregrad.compile(fn, policy="refuse")
    reports.append(made)
    return made


def _warm_up(compiled, args, kwargs):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled.warm_up(*args, **kwargs)
    except Exception as error:
        raise Refused(one_line(error)) from None


def _take_gradients(call, left):
    result = left.result if call.process is None else call.process(left.result)
    outputs = [t for t in _tensors(result) if t.requires_grad]
    if not outputs:
        return
    torch.manual_seed(_SEED + 2)
    tangents = [torch.empty(t.shape, dtype=t.dtype).normal_() if t.layout == torch.strided else None for t in outputs]
    try:
        if any(t is None for t in tangents):
            return
        left.gradients = torch.autograd.grad(outputs, left.leaves, tangents, allow_unused=True)
    except Exception as error:
        left.gradient_error = one_line(error)


def _compare_gradients(eager, compiled, comparison):
    if eager.gradient_error and compiled.gradient_error:
        return
    if eager.gradient_error or compiled.gradient_error:
        raise Difference(
            f"gradients: eager {eager.gradient_error or 'gives them'}, compiled {compiled.gradient_error or 'gives them'}"
        )
    if (eager.gradients is None) != (compiled.gradients is None):
        raise Difference("gradients: one of eager and compiled gives results that require grad, the other doesn't")
    for i, (expected, mine) in enumerate(zip(eager.gradients or (), compiled.gradients or ())):
        comparison.tensors(f"gradient {i}", expected, mine, strides=False)


def _compare_state(call, comparison):
    if not call.modules:
        return
    eager, compiled = (module.state_dict() for module in call.modules)
    comparison.trees("state of the module", tree_map(lambda t: t, eager), tree_map(lambda t: t, compiled))


def _tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
