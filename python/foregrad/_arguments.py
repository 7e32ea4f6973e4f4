"""Arguments and results as lists of tensors, and what is left of them without the tensors.

What is left of a call's arguments is guarded by equality: it is the key of the compiler that the call goes to. Equal
means that no function can tell: `1`, `1.0` and `True` differ, so do `0.0` and `-0.0`, and a NaN equals itself.
"""

from __future__ import annotations

import enum
import struct
import traceback
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

# What a result may hold besides tensors: values that can't hold a tensor themselves.
_PLAIN = (type(None), bool, int, float, complex, str, bytes, enum.Enum, torch.Size, torch.dtype, torch.device,
          torch.layout, torch.memory_format)  # fmt: skip


def flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree. A `torch.Size` is one: rebuilt of its numbers it would be a tuple."""
    return tree_flatten(tree, is_leaf=lambda node: isinstance(node, torch.Size))


# Stands in the list of leaves where a tensor was.
_TENSOR = object()


@dataclass(frozen=True)
class Rest:
    """What is left of a tree without its tensors."""

    spec: TreeSpec
    leaves: tuple[Any, ...]

    def rebuild(self, tensors: Sequence[torch.Tensor | None]) -> Any:
        """The tree with these tensors."""
        rest = iter(tensors)
        return tree_unflatten([next(rest) if leaf is _TENSOR else leaf for leaf in self.leaves], self.spec)

    def key(self) -> Hashable:
        """Equal for rests that no function can tell apart."""
        return self.spec, tuple(_key(leaf) for leaf in self.leaves)


def take_apart(tree: Any) -> tuple[list[torch.Tensor], Rest]:
    """The tensors of a tree, and the rest."""
    leaves, spec = flatten(tree)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return tensors, Rest(spec, tuple(_TENSOR if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves))


def _key(leaf: Any) -> Hashable:
    kind = type(leaf)
    if kind is float:
        return kind, struct.pack("d", leaf)
    if kind is complex:
        return kind, struct.pack("dd", leaf.real, leaf.imag)
    if isinstance(leaf, tuple):
        return kind, tuple(_key(part) for part in leaf)
    if kind is slice:
        return kind, _key((leaf.start, leaf.stop, leaf.step))
    try:
        hash(leaf)
    except TypeError:
        raise TypeError(
            f"foregrad: an argument is a `{kind.__name__}`, which is neither a tensor nor hashable. Expected tensors, "
            "values that can be compared, and containers of them that `torch.utils._pytree` knows. Register the type, "
            "or capture the value."
        ) from None
    return kind, leaf


def traced(fn: Callable[..., Any], rest: Rest) -> Callable[[list[torch.Tensor]], tuple[list[torch.Tensor], Rest, bool]]:
    """The function of tensors alone that one call of `fn` is. Also says whether an argument's container was changed,
    which no graph can tell."""

    def run(tensors: list[torch.Tensor]) -> tuple[list[torch.Tensor], Rest, bool]:
        args, kwargs = rest.rebuild(tensors)
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:
            _clear_frames(error)
            raise
        results, rest_of_result = take_apart(result)
        for leaf in rest_of_result.leaves:
            if leaf is not _TENSOR and not isinstance(leaf, _PLAIN):
                raise TypeError(
                    f"foregrad: the function's result holds a `{type(leaf).__name__}`. Expected tensors, plain values, "
                    "and containers of them that `torch.utils._pytree` knows. Register the type."
                )
        leaves_after, spec_after = flatten((args, kwargs))
        leaves_before = flatten(rest.rebuild(tensors))[0]
        is_as_before = (
            spec_after == rest.spec
            and len(leaves_after) == len(leaves_before)
            and all(after is before for after, before in zip(leaves_after, leaves_before))
        )
        return results, rest_of_result, not is_as_before

    return run


def _clear_frames(error: BaseException | None) -> None:
    """Drops the variables of the frames that the error passed: some are guards of `torch`'s, which put the state of the
    thread back when they go. That must not be after the trace."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
