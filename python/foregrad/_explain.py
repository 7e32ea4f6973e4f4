"""What a function becomes, as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foregrad._compiled import Compiled, compile


def explain(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Compiles `fn`, a function, module or compiled function, for calls with these arguments, and returns signature,
    joint, forward and backward graph, guards and stages as text. Nothing is called or written. Raises `RuntimeError`
    with the reason for what can't be compiled."""
    compiled = compile(fn.fn if isinstance(fn, Compiled) else fn, policy="refuse", tensors=_tensors_of(fn))
    if not compiled.warm_up(*args, **kwargs):
        raise RuntimeError("foregrad: `explain`: calls with such arguments run eagerly.")
    made = compiled.report().specialisations[0]
    stages = "".join(f"{stage.name:<24}{stage.ms:>9.3f} ms\n" for stage in made.stages)
    sections = {
        "signature": made.signature,
        "joint graph": made.joint_graph,
        "forward graph": made.forward_graph,
        "backward graph": made.backward_graph,
        "guards": made.guards,
        "compile stages": stages,
    }
    text = "".join(f"== {title} ==\n{body.rstrip()}\n" for title, body in sections.items())
    return text + f"saved for backward: {made.saved_bytes} bytes\n"


def _tensors_of(fn: Callable[..., Any]) -> list[Any]:
    return fn._captured.tensors() if isinstance(fn, Compiled) else []
