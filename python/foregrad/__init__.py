"""Compiles differentiable PyTorch code ahead of its calls, forward and backward.

The function runs once on tensors without data; the operators it calls become graphs, which later calls run behind an
ordinary autograd node. What a call leaves behind is what eager would have left; what can't be had so runs eagerly and
is counted, or is refused.
"""

import torch  # noqa: F401  (its libraries are loaded before ours)

from foregrad._C import Report, SelfCheck, __version__, self_check
from foregrad._aot import aot_function
from foregrad._compiled import Compiled, compile
from foregrad._explain import explain
from foregrad._value_and_grad import ValueAndGrad, value_and_grad

__all__ = [
    "Compiled",
    "Report",
    "SelfCheck",
    "ValueAndGrad",
    "__version__",
    "aot_function",
    "compile",
    "explain",
    "self_check",
    "value_and_grad",
]
