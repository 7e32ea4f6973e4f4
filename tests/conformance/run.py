#!/usr/bin/env python3
"""Runs every sample of PyTorch's operator and module databases, compiled by Foregrad against eager.

    run.py [--dtype float32,…] [--op NAME,…] [--variant …] [--set operators|modules] [--limit N] [--jobs N]
           [--json FILE] [--page FILE]

An unrestricted run writes docs/conformance.md.

Compared are values (with the database's tolerances), dtypes, strides, flags, aliasing, versions, what was written, and
gradients. Exit code 1 if something differs or crashes.
"""

import argparse
import collections
import fnmatch
import itertools
import logging
import os
import pathlib
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import torch  # noqa: E402

import modules  # noqa: E402
import operators  # noqa: E402
import pool  # noqa: E402
from comparison import Difference  # noqa: E402
from one_call import Refused, Skip, check  # noqa: E402
from outcome import Outcome, one_line  # noqa: E402
from summary import Summary  # noqa: E402

_DATABASES = {"operators": operators, "modules": modules}
_VARIANTS = {"operators": ("function", "inplace", "out"), "modules": ("train", "eval")}
_DTYPES = ("float32", "float64", "complex128", "bfloat16", "int64")


def _options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default=",".join(_DTYPES), help="dtypes, by comma")
    parser.add_argument("--op", default="*", help="names of operators or modules, by comma; * stands for any text")
    parser.add_argument("--variant", default="function,inplace,out,train,eval", help="by comma")
    parser.add_argument("--set", default="operators,modules", help="by comma")
    parser.add_argument("--limit", type=int, default=None, help="samples of each operator and dtype")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=120, help="that one sample may take")
    parser.add_argument("--json", type=pathlib.Path, default=None, help="where failing samples go")
    parser.add_argument("--page", type=pathlib.Path, default=None, help="where the summary goes")
    options = parser.parse_args()
    kept_out = [(name, getattr(options, name)) for name in ("dtype", "op", "variant", "set", "limit")]
    kept_out = [f"--{name} {value}" for name, value in kept_out if value != parser.get_default(name)]
    options.restriction = " ".join(kept_out)
    if options.page is None and not kept_out:
        options.page = pathlib.Path(__file__).parents[2] / "docs" / "conformance.md"
    return options


def _tasks(options):
    patterns = options.op.split(",")
    for database, dtype in itertools.product(options.set.split(","), options.dtype.split(",")):
        for name in _DATABASES[database].names():
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                yield database, name, dtype


def _work(options, task, first):
    """Yields `(number, None)` when a call begins and `(number, record)` when it is done."""
    database, name, dtype = task
    wanted = set(options.variant.split(",")) & set(_VARIANTS[database])
    samples = _DATABASES[database].calls(name, getattr(torch, dtype), wanted)
    for number, (variant, sample, arguments, call) in enumerate(samples):
        if options.limit is not None and sample >= options.limit:
            break
        if number < first:
            continue
        yield number, None
        outcome = Outcome(name, variant, dtype, sample, "crashed", arguments=arguments)
        yield number, outcome.to_json()
        _check(call, outcome)
        yield number, outcome.to_json()


def _check(call, outcome):
    try:
        comparison, compiled = check(call)
        outcome.kind, outcome.is_exact = "passed", comparison.is_exact
        counts = collections.Counter()
        for made in compiled.report().specialisations:
            counts.update(made.last_resort_shapes)
        outcome.last_resort = dict(counts)
    except Skip as skip:
        outcome.kind, outcome.reason = "skipped", str(skip)
    except Refused as refused:
        outcome.kind, outcome.reason = "refused", str(refused)
    except Difference as difference:
        outcome.kind, outcome.reason = "differs", str(difference)
    except Exception as error:
        outcome.kind, outcome.reason = "differs", f"the check itself failed: {one_line(error)}"


def main():
    options = _options()
    torch.set_num_threads(1)  # children are forked
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    tasks = list(_tasks(options))
    summary = Summary()
    begin, done = time.monotonic(), collections.Counter()

    def on_done(task, records, crash):
        summary.add(task, records, crash)
        done["tasks"] += not crash
        if sys.stderr.isatty() or done["tasks"] % 50 == 0 or done["tasks"] == len(tasks):
            minutes = (time.monotonic() - begin) / 60
            print(f"{done['tasks']}/{len(tasks)} {minutes:.1f} min: {summary.line()}", file=sys.stderr, flush=True)
        if options.json and done["tasks"] % 50 == 0:
            summary.write_json(options.json)

    pool.run(tasks, lambda task, first: _work(options, task, first), options.jobs, options.seconds, on_done)
    if options.json:
        summary.write_json(options.json)
    if options.page:
        summary.write_page(options.page, options.restriction)
    print(summary.line())
    return 0 if summary.is_clean() else 1


if __name__ == "__main__":
    sys.exit(main())
