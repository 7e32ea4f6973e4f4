"""The modules of `module_db`: their samples as calls, in training and in evaluation."""

import copy
import functools
import warnings

import torch
from torch.nn.parameter import is_lazy
from torch.testing._internal.common_modules import module_db

from copies import Copier
from one_call import Call


def names():
    """The names of all modules."""
    return [info.name for info in module_db]


@functools.cache
def _by_name():
    return {info.name: info for info in module_db}


def calls(name, dtype, variants):
    """Yields `(variant, number of the sample, what its arguments are, call)`."""
    info = _by_name()[name]
    if dtype not in info.dtypes:
        return
    with_gradients = info.supports_gradgrad or dtype.is_floating_point or dtype.is_complex
    for variant in ("train", "eval"):
        if variant not in variants:
            continue
        training = variant == "train"
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = info.module_inputs_func(info, "cpu", dtype, with_gradients, training)
            for number, sample in enumerate(samples):
                made = sample.constructor_input
                module = info.module_cls(*made.args, **made.kwargs, dtype=dtype) if _takes_dtype(info, made) else (
                    info.module_cls(*made.args, **made.kwargs).to(dtype))  # fmt: skip
                module.train(training)
                given = sample.forward_input
                arguments = (tuple(given.args), dict(given.kwargs)) if given is not None else ((), {})
                if any(is_lazy(parameter) for parameter in module.parameters()):
                    args, kwargs = Copier()(arguments)
                    module(*args, **kwargs)
                yield variant, number, sample.desc or repr(made)[:200], Call(
                    None, arguments, with_gradients=with_gradients, modules=(module, copy.deepcopy(module))
                )


def _takes_dtype(info, made):
    try:
        torch.random.manual_seed(0)
        info.module_cls(*made.args, **made.kwargs, dtype=torch.float32)
    except TypeError:
        return False
    return True
