"""What a call left behind, eager against compiled."""

import math

import torch
from torch.utils._pytree import tree_flatten

# The defaults of `torch.testing`.
_TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}


class Difference(Exception):
    """Eager and compiled differ."""


class Comparison:
    """Compares what two calls left. `overrides` gives the least tolerances by dtype, `(rtol, atol)`."""

    def __init__(self, overrides=None, *, compares_values=True):
        self._overrides = overrides or {}
        self._compares_values = compares_values
        self.is_exact = True

    def trees(self, what, eager, compiled):
        """Results: the same structure, the same plain values, equal tensors."""
        eager_leaves, eager_spec = tree_flatten(eager)
        leaves, spec = tree_flatten(compiled)
        if spec != eager_spec:
            raise Difference(f"{what}: eager returns {eager_spec}, compiled {spec}")
        for i, (mine, expected) in enumerate(zip(leaves, eager_leaves)):
            name = what if len(leaves) == 1 else f"{what} {i}"
            if isinstance(expected, torch.Tensor):
                self.tensors(name, expected, mine)
            elif type(mine) is not type(expected) or not _plain_equal(mine, expected):
                raise Difference(f"{name}: eager gives {expected!r}, compiled {mine!r}")

    def tensors(self, what, eager, compiled, *, strides=True):
        """Type, flags and values."""
        if (eager is None) != (compiled is None):
            raise Difference(f"{what}: eager {_word(eager)}, compiled {_word(compiled)}")
        if eager is None:
            return
        facts = [("type", type), ("dtype", lambda t: t.dtype), ("layout", lambda t: t.layout)]
        facts += [("shape", lambda t: tuple(t.shape)), ("requires_grad", lambda t: t.requires_grad)]
        if strides:
            facts.append(("is_leaf", lambda t: t.is_leaf))
            if eager.layout == torch.strided:
                facts += [("strides", lambda t: t.stride()), ("offset", lambda t: t.storage_offset())]
                facts += [("conj", lambda t: t.is_conj()), ("neg", lambda t: t.is_neg())]
        for fact, read in facts:
            if read(eager) != read(compiled):
                raise Difference(f"{what}: {fact}: eager {read(eager)}, compiled {read(compiled)}")
        if self._compares_values:
            self._values(what, eager.detach(), compiled.detach())

    def _values(self, what, eager, compiled):
        if eager.layout != torch.strided:
            eager, compiled = eager.to_dense(), compiled.to_dense()
        if eager.is_quantized:
            eager, compiled = eager.int_repr(), compiled.int_repr()
        eager, compiled = eager.resolve_conj().resolve_neg(), compiled.resolve_conj().resolve_neg()
        if _bits_equal(eager, compiled):
            return
        self.is_exact = False
        rtol, atol = _TOLERANCES.get(eager.dtype, (0.0, 0.0))
        more = self._overrides.get(eager.dtype, (0.0, 0.0))
        try:
            torch.testing.assert_close(
                compiled, eager, rtol=max(rtol, more[0]), atol=max(atol, more[1]), equal_nan=True, check_stride=False
            )
        except AssertionError as error:
            text = " ".join(str(error).split())
            raise Difference(f"{what}: values: {text[:300]}") from None


def memory(tensors):
    """How the tensors share memory: for each the first that has its storage, and the first that it is."""
    first_storage, first_tensor, sharing = {}, {}, []
    for i, tensor in enumerate(tensors):
        storage = tensor.untyped_storage()._cdata if tensor.layout == torch.strided else id(tensor)
        sharing.append((first_tensor.setdefault(id(tensor), i), first_storage.setdefault(storage, i), tensor._is_view()))
    return sharing


def compare_memory(eager, compiled):
    """Which tensors are the same, share storage, or are views; arguments first, then results."""
    mine, expected = memory(compiled), memory(eager)
    for i, (left, right) in enumerate(zip(expected, mine)):
        if left != right:
            names = ("same tensor as", "shares storage with", "is a view")
            parts = [f"{n}: eager {a}, compiled {b}" for n, a, b in zip(names, left, right) if a != b]
            raise Difference(f"aliasing of tensor {i} of arguments and results: {'; '.join(parts)}")


def _bits_equal(left, right):
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if left.numel() == 0:
        return True
    if left.dtype.is_floating_point or left.dtype.is_complex:
        same = (left == right) | ((left != left) & (right != right))
        return bool(same.all())
    return bool(torch.equal(left, right))


def _plain_equal(left, right):
    if isinstance(left, float) and math.isnan(left):
        return isinstance(right, float) and math.isnan(right)
    return left == right


def _word(tensor):
    return "gives none" if tensor is None else "gives one"
