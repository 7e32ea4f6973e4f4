"""The operators of `op_db`: their samples as calls."""

import functools
import warnings

import torch
from torch.testing._internal import common_methods_invocations as database
from torch.testing._internal.common_device_type import toleranceOverride
from torch.utils._pytree import tree_leaves, tree_map

from copies import Copier
from one_call import Call

# Results whose elements nobody wrote: shape, strides and dtype are compared.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_",
                 "resize_as_"}  # fmt: skip

op_db = database.op_db

# Samples of random operators seed the generator inside of the function. Here it is seeded outside.
database.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)


def names():
    """The full names of all operators: with the name of the variant that the database tests."""
    return [op.full_name for op in op_db]


@functools.cache
def _by_name():
    return {op.full_name: op for op in op_db}


def calls(name, dtype, variants):
    """Yields `(variant, number of the sample, what its arguments are, call)`."""
    op = _by_name()[name]
    if dtype not in op.supported_dtypes("cpu"):
        return
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        has_gradients = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
        samples = op.sample_inputs("cpu", dtype, requires_grad=has_gradients)
        for number, sample in enumerate(samples):
            for variant, call in _variants(op, sample, has_gradients, variants):
                call.tolerances = _tolerances(op)
                call.compares_values = op.name not in UNINITIALISED
                yield variant, number, _describe(sample), call


def _variants(op, sample, has_gradients, wanted):
    arguments = ((sample.input, *sample.args), dict(sample.kwargs))
    if "function" in wanted:
        yield "function", Call(
            _function(op.op), arguments, process=sample.output_process_fn_grad, with_gradients=has_gradients
        )
    if "inplace" in wanted and op.inplace_variant is not None and not sample.broadcasts_input:
        yield "inplace", Call(_function(op.inplace_variant), arguments, prepare=_with_history, with_gradients=has_gradients)
    if "out" in wanted and op.supports_out:
        yield from _out_variants(op, arguments)


def _function(op):
    # A call of an operator's own has no signature of Python's.
    return lambda *args, **kwargs: op(*args, **kwargs)


def _with_history(passed):
    """A leaf that requires grad can't be written: the call gets a copy that autograd knows."""
    (first, *rest), kwargs = passed
    return (tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) and t.requires_grad else t, first), *rest), kwargs


def _out_variants(op, arguments):
    (args, kwargs) = tree_map(lambda t: t.detach() if isinstance(t, torch.Tensor) else t, arguments)
    torch.manual_seed(0)
    try:
        result = op.op(*args, **kwargs)
    except Exception:
        return
    leaves = tree_leaves(result)
    if not all(isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided for leaf in leaves):
        return
    makers = {
        "out": lambda t: torch.zeros_like(t),
        "out, no elements": lambda t: torch.empty(0, dtype=t.dtype),
        "out, gaps": lambda t: torch.zeros((*t.shape, 2), dtype=t.dtype)[..., 0],
    }
    for name, make in makers.items():
        outs = tuple(make(leaf) for leaf in leaves)
        out = outs[0] if isinstance(result, torch.Tensor) else outs
        # Some kernels write other elements than the tensor's where it has gaps.
        if not _writes_result(op, args, {**kwargs, "out": Copier()(out)}, leaves):
            continue
        yield name, Call(_function(op.op), (args, {**kwargs, "out": out}))


def _writes_result(op, args, kwargs, results):
    torch.manual_seed(0)
    try:
        op.op(*Copier()(args), **kwargs)
    except Exception:
        return True  # for the call to find
    if op.name in UNINITIALISED:
        return True
    return all(torch.allclose(o, r, equal_nan=True) for o, r in zip(tree_leaves(kwargs["out"]), results))


@functools.cache
def _tolerances_of(name):
    found = {}
    for decorator in _by_name()[name].decorators or ():
        inner = getattr(decorator, "decorators", [decorator])
        for each in inner:
            if not isinstance(each, toleranceOverride):
                continue
            for dtype, tolerance in each.d.items():
                before = found.get(dtype, (0.0, 0.0))
                found[dtype] = (max(before[0], tolerance.rtol), max(before[1], tolerance.atol))
    return found


def _tolerances(op):
    return _tolerances_of(op.full_name)


def _describe(sample):
    def of(leaf):
        if isinstance(leaf, torch.Tensor):
            strides = list(leaf.stride()) if leaf.layout == torch.strided else leaf.layout
            return f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}{strides}"
        return repr(leaf)[:60]

    parts = [of(leaf) for leaf in tree_leaves((sample.input, sample.args))]
    parts += [f"{key}={tree_map(of, value)}" for key, value in sample.kwargs.items()]
    return ", ".join(parts)[:400]
