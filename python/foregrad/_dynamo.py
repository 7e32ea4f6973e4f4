"""`torch.compile(model, backend="foregrad")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx._lazy_graph_module import _LazyGraphModule

from foregrad._compiled import compile


def backend(graph: torch.fx.GraphModule, example_inputs: list[Any], **options: Any) -> Callable[..., Any]:
    """Compiles a graph that `torch.compile` found. Options, by `torch.compile(…, options={…})`, are those of
    `compile`."""
    _LazyGraphModule.force_recompile(graph)  # else its first call does: a change of the module
    compiled = compile(graph, **options.get("options") or {})
    return torch._dynamo.disable(compiled.__call__)
