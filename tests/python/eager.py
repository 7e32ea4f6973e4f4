"""Eager is the oracle."""

import copy

import torch
from torch.utils._pytree import tree_flatten, tree_leaves

import foregrad


def outcome_of(fn, make_arguments, calls=3):
    """What each of some calls gives: its result and the gradients of the arguments, or its error."""
    outcomes = []
    for seed in range(calls):
        torch.manual_seed(seed)
        args = make_arguments()
        try:
            result = fn(*args)
        except Exception as error:
            outcomes.append((type(error), str(error)))
            continue
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        leaves = [leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        gradients = ()
        if outputs and leaves:
            gradients = torch.autograd.grad([o.sum() for o in outputs], leaves, allow_unused=True)
        outcomes.append((result, gradients, args))
    return outcomes


def same(left, right):
    """Whether two outcomes are equal: structure, plain values, tensors bit for bit."""
    left_leaves, left_spec = tree_flatten(left)
    right_leaves, right_spec = tree_flatten(right)
    if left_spec != right_spec:
        return False
    for one, other in zip(left_leaves, right_leaves):
        if isinstance(one, torch.Tensor):
            if one.dtype != other.dtype or one.stride() != other.stride() or not torch.equal(one, other):
                return False
        elif type(one) is not type(other) or one != other:
            return False
    return True


def assert_as_eager(fn, make_arguments, *, is_compiled=True, **options):
    """Calls `fn`, eager and compiled, and compares. Returns the compiled function."""
    other = copy.deepcopy(fn) if isinstance(fn, torch.nn.Module) else fn
    compiled = foregrad.compile(other, policy="refuse" if is_compiled else "eager", **options)
    expected = outcome_of(fn, make_arguments)
    found = outcome_of(compiled, make_arguments)
    assert same(found, expected), f"eager {expected}, compiled {found}"
    assert (compiled.report().eager_calls == 0) == is_compiled
    return compiled
