"""What a function uses besides its arguments: modules and declared tensors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import torch
from torch.nn.parameter import is_lazy


CHANGED = "the function gives"


class Captured:
    """The declared modules and tensors of one function."""

    def __init__(self, modules: Iterable[torch.nn.Module], tensors: Iterable[torch.Tensor]):
        self._modules = tuple(modules)
        self._tensors = tuple(tensors)

    def tensors(self) -> list[torch.Tensor]:
        """All parameters, then all buffers, then the declared tensors, each once."""
        parameters = [p for module in self._modules for p in module.parameters()]
        buffers = [b for module in self._modules for b in module.buffers()]
        found = {id(tensor): tensor for tensor in (*parameters, *buffers, *self._tensors)}
        return list(found.values())

    def is_lazy(self) -> bool:
        """Whether a module waits for its first call to make its parameters: hooks do that, which a trace must not run."""
        return any(is_lazy(t) for part, tensors in self._parts() for t in tensors if t is not None)

    def _parts(self) -> Iterable[tuple[torch.nn.Module, list[Any]]]:
        for module in self._modules:
            for part in module.modules():
                yield part, [*part._parameters.values(), *part._buffers.values()]

    def key(self) -> Hashable:
        """Equal while the modules are made of the same submodules, in the same modes, with the same tensors; whoever
        keeps it keeps `objects` too."""
        return tuple((id(part), part.training, *map(id, tensors)) for part, tensors in self._parts())

    def objects(self) -> list[Any]:
        """What `key` names."""
        return [(part, tensors) for part, tensors in self._parts()]

    def guard(self) -> _Unchanged:
        """A context that a trace runs in: what the function replaces in the modules is put back, and an error."""
        return _Unchanged([part for part, _ in self._parts()])


class _Unchanged:
    def __init__(self, parts: list[torch.nn.Module]):
        self._parts = parts

    def __enter__(self) -> None:
        self._before = [_attributes_of(part) for part in self._parts]

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        changed = None
        for part, before in zip(self._parts, self._before):
            for mine, old in zip(_attributes_of(part, copies=False), before):
                names = [name for name in {**old, **mine} if mine.get(name, _ABSENT) is not old.get(name, _ABSENT)]
                if names:
                    mine.clear()
                    mine.update(old)
                    changed = f"`{names[0]}` of a module `{type(part).__name__}`"
        if changed is not None and kind is None:
            raise RuntimeError(
                f"foregrad: {CHANGED} {changed} another value. Expected writes in place, and `train()`, `eval()` "
                "and changes of attributes outside of it."
            )


_ABSENT = object()


def _attributes_of(part: torch.nn.Module, *, copies: bool = True) -> list[dict[str, Any]]:
    """Parameters, buffers and submodules, and all other attributes."""
    attributes = [part._parameters, part._buffers, part._modules, part.__dict__]
    return [dict(each) for each in attributes] if copies else attributes
