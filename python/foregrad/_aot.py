"""Compilers of one's own, written in Python, in the place of Foregrad's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from foregrad import _C
from foregrad._compiled import Compiled
from foregrad._graph_module import to_graph_module, value_ids

GraphCompiler = Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable[..., Any]]


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: GraphCompiler,
    bw_compiler: GraphCompiler | None = None,
    inference_compiler: GraphCompiler | None = None,
    partition_fn: Callable[[torch.fx.GraphModule], Iterable[Any]] | None = None,
    **options: Any,
) -> Compiled:
    """Makes a compiled function whose graphs your compilers compile.

    A compiler gets a `torch.fx.GraphModule` and fake tensors like its inputs, and returns what is called with the
    graph's inputs and returns its outputs, a list or tuple; None where the graph has None. Called below autograd, maybe
    from several threads at once; changes none of its inputs. Nodes are functional operators of `torch.ops`.

    - `fw_compiler`, `bw_compiler`: of calls that gradients may be taken of; `bw_compiler` is `fw_compiler` if not given.
    - `inference_compiler`: of the other calls; `fw_compiler` if not given.
    - `partition_fn`: gets the joint graph and returns the nodes, or their names, or their numbers, whose values forward
      hands to backward; what else backward reads is computed again from these.

    Other options are those of `compile`.
    """
    backend = _C.Backend(
        forward=_taking_graphs(fw_compiler),
        backward=_taking_graphs(bw_compiler or fw_compiler),
        inference=_taking_graphs(inference_compiler or fw_compiler),
        partitioner=None if partition_fn is None else lambda joint: value_ids(partition_fn(to_graph_module(joint)[0])),
    )
    return Compiled(fn, backend=backend, **options)


def _taking_graphs(compiler: GraphCompiler) -> Callable[[_C.Graph], Callable[[list[torch.Tensor]], Any]]:
    def compile_graph(graph: _C.Graph) -> Callable[[list[torch.Tensor]], Any]:
        run = compiler(*to_graph_module(graph))
        # The convention of `torch`: such a callable takes a list, which it may empty.
        return run if getattr(run, "_boxed_call", False) else lambda inputs: run(*inputs)

    return compile_graph
