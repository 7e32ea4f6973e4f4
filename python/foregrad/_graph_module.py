"""Graphs as modules of `torch.fx`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from foregrad import _C


def to_graph_module(graph: _C.Graph) -> tuple[torch.fx.GraphModule, list[torch.Tensor]]:
    """The graph as a `GraphModule`, and fake tensors like its inputs. A value `%7` of the graph is the node `v7`;
    `meta["val"]` is a fake tensor like it, `meta["role"]` of an input what it is for; `meta["roles"]` of the output
    node lists what each output is for."""
    return _Builder(graph).build()


def value_ids(names: Any) -> list[int]:
    """The values of nodes, their names, or their numbers."""
    return [name if isinstance(name, int) else int(str(name).removeprefix("v")) for name in names]


class _Builder:
    def __init__(self, graph: _C.Graph):
        self._source = graph
        self._graph = torch.fx.Graph()
        self._nodes: dict[_C.Value, torch.fx.Node] = {}
        self._constants: dict[str, torch.Tensor] = {}
        self._mode = FakeTensorMode(allow_non_fake_inputs=True)

    def build(self) -> tuple[torch.fx.GraphModule, list[torch.Tensor]]:
        for value, role in self._source.inputs:
            node = self._define(value, self._graph.placeholder(f"v{value.index}"))
            node.meta["role"] = role
        for source in self._source.nodes:
            self._add(source)
        outputs = self._source.outputs
        results = tuple(None if value is None else self._nodes[value] for value, _ in outputs)
        self._graph.output(results).meta["roles"] = [role for _, role in outputs]
        examples = [self._nodes[value].meta["val"] for value, _ in self._source.inputs]
        module = torch.fx.GraphModule(self._constants, self._graph)
        return module, examples

    def _define(self, value: _C.Value, node: torch.fx.Node) -> torch.fx.Node:
        kind = self._source.type(value)
        with self._mode:
            fake = torch.empty_strided(kind.sizes, kind.strides, dtype=kind.dtype, device="cpu")
        node.meta["val"] = fake
        self._nodes[value] = node
        return node

    def _add(self, source: _C.Node) -> None:
        target = _operator(source.op)
        positional, named = source.arguments
        args = tuple(self._operand(argument) for argument in positional)
        kwargs = {name: self._operand(argument) for name, argument in named.items()}
        results = source.results
        if len(results) == 1 and isinstance(results[0], _C.Value):
            self._define(results[0], self._call(target, args, kwargs, f"v{results[0].index}"))
            return
        call = self._call(target, args, kwargs, None)
        values = results[0] if len(results) == 1 and isinstance(results[0], list) else results
        for place, value in enumerate(values):
            if isinstance(value, _C.Value):
                self._define(value, self._call(operator.getitem, (call, place), {}, f"v{value.index}"))

    def _call(self, target: Callable[..., Any], args: Any, kwargs: Any, name: str | None) -> torch.fx.Node:
        return self._graph.create_node("call_function", target, args, kwargs, name)

    def _operand(self, operand: Any) -> Any:
        if isinstance(operand, _C.Value):
            return self._nodes[operand]
        if isinstance(operand, list):
            return [self._operand(entry) for entry in operand]
        if isinstance(operand, torch.Tensor | torch.Generator):  # which `fx` has no text for
            name = f"constant{len(self._constants)}"
            self._constants[name] = operand
            return self._graph.get_attr(name)
        return operand


def _operator(name: str) -> Callable[..., Any]:
    full, _, overload = name.partition(".")
    namespace, _, plain = full.partition("::")
    packet = getattr(getattr(torch.ops, namespace), plain)
    return getattr(packet, overload or "default")
