"""A function's value and its gradients in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from foregrad import _C
from foregrad._compiled import Compiled, compile


class ValueAndGrad:
    """What `value_and_grad` makes."""

    def __init__(self, compiled: Compiled):
        self.compiled = compiled

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, list[torch.Tensor | None]]:
        """Returns the function's result, detached, and the gradients of its first tensor, a scalar."""
        arguments = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        wanted = _C.tensors_to_differentiate(arguments, self.compiled._captured.tensors())
        with torch.enable_grad():
            result = self.compiled(*args, **kwargs)
        tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        if not tensors:
            raise RuntimeError("foregrad: `value_and_grad`: the function returns no tensor. Return the loss first.")
        gradients = _C.gradients_of(tensors[0], wanted)
        return tree_map(_detached, result), gradients

    def report(self) -> _C.Report:
        """Says what was compiled, when and why, and what fell back to eager."""
        return self.compiled.report()

    def invalidate(self) -> None:
        """Drops all specialisations."""
        self.compiled.invalidate()


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None else leaf


def value_and_grad(fn: Callable[..., Any], **options: Any) -> ValueAndGrad:
    """Makes a function that gives the value of `fn` and its gradients, both compiled: of the arguments that require
    grad in their order, then of the parameters of the modules, then of `tensors` that require grad; each tensor once,
    None where eager's is None. `grad` of leaves stays as it was. Options are those of `compile`."""
    return ValueAndGrad(compile(fn, **options))
