"""Compiled functions."""

from __future__ import annotations

import functools
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Literal

import torch

from foregrad import _C
from foregrad._arguments import Rest, take_apart, traced
from foregrad._captured import CHANGED, Captured

_log = logging.getLogger("foregrad")

_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)


def _why_not_traceable(tensors: list[torch.Tensor]) -> str | None:
    """Why a call can't be traced that only Python knows of."""
    for tensor in tensors:
        if type(tensor) not in _PLAIN_TENSORS:
            return f"an argument is a `{type(tensor).__name__}`, a subclass of `torch.Tensor`"
    if torch._C._len_torch_function_stack() > 0:
        return "a `TorchFunctionMode` is active"
    if torch._C._len_torch_dispatch_stack() > 0:
        return "a `TorchDispatchMode` is active"
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "it is called inside a transformation of `torch.func`"
    return None


def _refusal(reason: str) -> RuntimeError:
    return RuntimeError(f"foregrad: {reason}, which is not supported. Under the policy `eager` it runs eagerly.")


class Compiled:
    """A compiled function: called as the function is, with the same result. `compile` makes it. May be called from
    several threads, if the function may be."""

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        modules: Iterable[torch.nn.Module] = (),
        tensors: Iterable[torch.Tensor] = (),
        policy: Literal["eager", "refuse"] = "eager",
        max_specialisations: int = 64,
        backward_autocast: Literal["as_called", "as_forward", "off"] | torch.dtype = "as_called",
        backend: _C.Backend | None = None,
    ):
        self.fn = fn
        self._captured = Captured(_modules_of(fn, modules), tensors)
        is_dtype = isinstance(backward_autocast, torch.dtype)
        self._options = {
            "policy": policy,
            "max_specialisations": max_specialisations,
            "backward_autocast": "on" if is_dtype else backward_autocast,
            "backward_dtype": backward_autocast if is_dtype else torch.bfloat16,
            "backend": backend,
        }
        _C.Compiler([], **self._options)  # an option that is wrong is an error now
        self._policy = policy
        self._max_compilers = max(max_specialisations, 1)
        self._lock = threading.Lock()  # of all below
        self._compilers: OrderedDict[Hashable, tuple[_C.Compiler, Any]] = OrderedDict()
        self._structures = 0
        self._eager_calls = 0
        self._reasons: list[str] = []
        self._retries = 2
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, compiled for arguments like these. Raises what the function raises, and `RuntimeError`
        under the policy `refuse` for what can't be compiled."""
        tensors, rest = take_apart((args, kwargs))
        reason = self._why_not_traceable(tensors)
        if reason is not None:
            return self._run_eagerly(reason, args, kwargs)
        compiler, run = self._compiler_for(rest)
        is_compiled, results, rest_of_result = compiler.call(run, tensors)
        if is_compiled:
            return rest_of_result.rebuild(results)
        result = self.fn(*args, **kwargs)
        if results:  # what tracing failed of, and eager did not
            self._count_fallback(results, compiler, tensors)
        return result

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def warm_up(self, *args: Any, **kwargs: Any) -> bool:
        """Compiles for calls with arguments like these, with the grad mode of now, without making one. Returns whether
        such calls will be compiled."""
        tensors, rest = take_apart((args, kwargs))
        reason = self._why_not_traceable(tensors)
        if reason is not None:
            if self._policy == "refuse":
                raise _refusal(reason)
            return False
        compiler, run = self._compiler_for(rest)
        return compiler.warm_up(run, tensors)

    def report(self) -> _C.Report:
        """Says what was compiled, when and why, and what fell back to eager."""
        with self._lock:
            reports = [compiler.report() for compiler, _ in self._compilers.values()]
            merged = _C.Report()
            merged.specialisations = [made for report in reports for made in report.specialisations]
            merged.eager_calls = self._eager_calls + sum(report.eager_calls for report in reports)
            merged.fallback_reasons = _distinct(
                [*self._reasons, *(reason for report in reports for reason in report.fallback_reasons)]
            )
            merged.recompiles = [why for report in reports for why in report.recompiles]
            merged.recompiles += ["what is no tensor among the arguments differs"] * max(self._structures - 1, 0)
            return merged

    def invalidate(self) -> None:
        """Drops all specialisations."""
        with self._lock:
            self._compilers.clear()

    def _compiler_for(self, rest: Rest) -> tuple[_C.Compiler, Callable[..., Any]]:
        key = (rest.key(), self._captured.key())
        with self._lock:
            compiler = self._compilers.get(key)
            if compiler is None:
                tensors = self._captured.tensors()
                compiler = (_C.Compiler(tensors, **self._options), self._captured.objects())
                self._compilers[key] = compiler
                self._structures += 1
                if len(self._compilers) > self._max_compilers:
                    _log.warning(
                        "more than %d structures of arguments; the least recently used is dropped. Pass a number "
                        "that changes often as a zero-dimensional tensor.",
                        self._max_compilers,
                    )
                    self._compilers.popitem(last=False)
            self._compilers.move_to_end(key)
        run = traced(self.fn, rest)

        def guarded(stand_ins: list[torch.Tensor]) -> Any:
            with self._captured.guard():
                return run(stand_ins)

        return compiler[0], guarded

    def _why_not_traceable(self, tensors: list[torch.Tensor]) -> str | None:
        if self._captured.is_lazy():
            return "a module has parameters that its first call makes"
        return _why_not_traceable(tensors)

    def _count_fallback(self, reason: str, compiler: _C.Compiler, tensors: list[torch.Tensor]) -> None:
        # What a module keeps of its first call it may have now: such calls are traced once more.
        if CHANGED in reason and self._retries > 0:
            self._retries -= 1
            self._count_eagerly(reason)
        else:
            compiler.count_fallback(reason, tensors)

    def _run_eagerly(self, reason: str, args: Any, kwargs: Any) -> Any:
        if self._policy == "refuse":
            raise _refusal(reason)
        self._count_eagerly(reason)
        return self.fn(*args, **kwargs)

    def _count_eagerly(self, reason: str) -> None:
        with self._lock:
            self._eager_calls += 1
            is_new = reason not in self._reasons
            if is_new:
                self._reasons.append(reason)
        if is_new:
            _log.warning("a call runs eagerly: %s", reason)


def _modules_of(fn: Callable[..., Any], modules: Iterable[torch.nn.Module]) -> list[torch.nn.Module]:
    """The declared modules, and the one that `fn` is or is a method of."""
    found = [fn, getattr(fn, "__self__", None), *modules]
    return [module for module in found if isinstance(module, torch.nn.Module)]


def _distinct(items: list[str]) -> list[str]:
    return list(dict.fromkeys(items))


def compile(
    fn_or_module: Callable[..., Any],
    *,
    policy: Literal["eager", "refuse"] = "eager",
    modules: Iterable[torch.nn.Module] = (),
    tensors: Iterable[torch.Tensor] = (),
    max_specialisations: int = 64,
    backward_autocast: Literal["as_called", "as_forward", "off"] | torch.dtype = "as_called",
) -> Compiled:
    """Makes a compiled function. Nothing is compiled before the first call with each kind of arguments.

    Arguments and result are trees of containers (`torch.utils._pytree`); tensors are inputs of what is compiled, all
    else is guarded by equality, and comes back in the result as it was when the function was traced.

    - `policy`: what happens to a call that can't be compiled: `eager`, it runs eagerly and is counted, or `refuse`, it
      raises `RuntimeError` that says why.
    - `modules`, `tensors`: what the function uses besides its arguments. A module that is compiled, or whose method is,
      need not stand here.
    - `max_specialisations`: how many are kept for each structure of arguments, and of how many structures.
    - `backward_autocast`: the autocast state that backward is compiled for; a dtype means on.
    """
    return Compiled(
        fn_or_module,
        modules=modules,
        tensors=tensors,
        policy=policy,
        max_specialisations=max_specialisations,
        backward_autocast=backward_autocast,
    )
