"""Foregrad's library; `foregrad` is what to import."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

__version__: str

class Report:
    """What a compiled function has done so far."""

    class Stage:
        """One stage of a compilation."""

        @property
        def name(self) -> str: ...
        @property
        def ms(self) -> float: ...

    class Specialisation:
        """One compiled form of a function."""

        @property
        def signature(self) -> str:
            """Inputs and outputs in words."""
        @property
        def joint_graph(self) -> str:
            """Graph text, before partitioning."""
        @property
        def forward_graph(self) -> str: ...
        @property
        def backward_graph(self) -> str: ...
        @property
        def forward_dot(self) -> str:
            """Graphviz source."""
        @property
        def backward_dot(self) -> str: ...
        @property
        def guards(self) -> str:
            """One a line."""
        @property
        def stages(self) -> list[Report.Stage]: ...
        @property
        def compile_ms(self) -> float: ...
        @property
        def saved_bytes(self) -> int:
            """What forward hands to backward, parameters and inputs included."""
        @property
        def last_resort_shapes(self) -> dict[str, int]:
            """Operators whose shape took a run of the real kernel."""
        @property
        def calls(self) -> int: ...

    specialisations: list[Specialisation]
    eager_calls: int
    """Calls that were not compiled."""
    fallback_reasons: list[str]
    """Why, each once."""
    recompiles: list[str]
    """For each compilation but the first, the guard that failed."""

class SelfCheck:
    """Whether Foregrad can trace with this libtorch."""

    @property
    def ok(self) -> bool: ...
    @property
    def libtorch_version(self) -> str: ...
    @property
    def trace_key(self) -> str: ...
    @property
    def lines(self) -> list[str]: ...

def self_check() -> SelfCheck:
    """Checks libtorch's version, the dispatch keys that tracing uses, and a small function against eager."""

class Value:
    """What one node or input defines."""

    @property
    def index(self) -> int: ...
    def __hash__(self) -> int: ...

class TensorType:
    """A tensor without its data."""

    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def sizes(self) -> list[int]: ...
    @property
    def strides(self) -> list[int]: ...
    @property
    def storage_offset(self) -> int: ...
    @property
    def is_conj(self) -> bool: ...
    @property
    def is_neg(self) -> bool: ...

class Node:
    """One dispatcher operator with its operands."""

    @property
    def op(self) -> str: ...
    @property
    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Positional and named; values, lists of values, or what is no tensor."""
    @property
    def results(self) -> list[Any]: ...
    @property
    def is_backward(self) -> bool: ...

class Graph:
    """A graph; every value is written once."""

    @property
    def nodes(self) -> list[Node]: ...
    @property
    def inputs(self) -> list[tuple[Value, str]]:
        """Each with its role."""
    @property
    def outputs(self) -> list[tuple[Value | None, str]]: ...
    def type(self, value: Value) -> TensorType: ...

_GraphCompiler = Callable[[Graph], Callable[[list[torch.Tensor]], Sequence[torch.Tensor | None]]]

class Backend:
    """What a compiler backend puts in place of Foregrad's own parts."""

    def __init__(
        self,
        forward: _GraphCompiler | None,
        backward: _GraphCompiler | None,
        inference: _GraphCompiler | None,
        partitioner: Callable[[Graph], list[int]] | None,
    ) -> None: ...

class Compiler:
    """Holds the specialisations of one function for calls whose arguments differ in tensors only."""

    def __init__(
        self,
        tensors: list[torch.Tensor],
        policy: str,
        max_specialisations: int,
        backward_autocast: str,
        backward_dtype: torch.dtype,
        backend: Backend | None,
    ) -> None: ...
    def call(
        self, run: Callable[[list[torch.Tensor]], tuple[list[torch.Tensor], Any, bool]], tensors: list[torch.Tensor]
    ) -> tuple[bool, Any, Any]:
        """`(True, tensors, rest)`, or `(False, what tracing failed of, None)`."""
    def warm_up(
        self, run: Callable[[list[torch.Tensor]], tuple[list[torch.Tensor], Any, bool]], tensors: list[torch.Tensor]
    ) -> bool: ...
    def count_fallback(self, trace_error: str, tensors: list[torch.Tensor]) -> None: ...
    def report(self) -> Report: ...
    def invalidate(self) -> None: ...

def tensors_to_differentiate(arguments: list[torch.Tensor], declared: list[torch.Tensor]) -> list[torch.Tensor]: ...
def gradients_of(loss: torch.Tensor, wanted: list[torch.Tensor]) -> list[torch.Tensor | None]: ...
