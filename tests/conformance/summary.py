"""The results of a run: a page and a list of what failed."""

import collections
import json
import os

import torch

from outcome import KINDS, Outcome, group_of


class Summary:
    """Counts outcomes; keeps those that did not pass."""

    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)  # (set, dtype, variant) to kinds
        self.failing = []
        self.last_resort = collections.Counter()
        self.last_resort_in = collections.defaultdict(set)
        self.inexact = collections.Counter()
        self._names = set()

    def add(self, task, records, crash):
        """Adds what one child wrote. A record that is announced as crashed and not followed by another of its number
        is what the child died of."""
        database, name, dtype = task
        self._names.add((database, name))
        latest = {(record["variant"], record["sample"]): record for record in records}
        for record in latest.values():
            outcome = Outcome(**record)
            if outcome.kind == "crashed":
                outcome.reason = crash or "the process ended"
            self._count(database, outcome)
        if crash and not any(record["kind"] == "crashed" for record in latest.values()):
            self._count(database, Outcome(name, "samples", dtype, 0, "crashed", crash))

    def _count(self, database, outcome):
        self.counts[database, outcome.dtype, outcome.variant][outcome.kind] += 1
        if outcome.kind != "passed":
            self.failing.append(outcome)
        elif not outcome.is_exact:
            self.inexact[outcome.op] += 1
        for op, count in outcome.last_resort.items():
            self.last_resort[op] += count
            self.last_resort_in[op].add(outcome.op)

    def total(self):
        return sum(self.counts.values(), collections.Counter())

    def line(self):
        total = self.total()
        return ", ".join(f"{kind} {total[kind]}" for kind in KINDS)

    def is_clean(self):
        total = self.total()
        return not total["differs"] and not total["crashed"]

    def write_json(self, path):
        records = [outcome.to_json() for outcome in sorted(self.failing, key=_order)]
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text("[\n" + ",\n".join(json.dumps(record) for record in records) + "\n]\n")
        os.replace(partial, path)

    def write_page(self, path, restriction=""):
        """`restriction`: the options that kept samples out."""
        path.write_text("\n".join(self._page(restriction)) + "\n")

    def _page(self, restriction):
        yield "# Conformance"
        yield ""
        yield f"PyTorch {torch.__version__}'s own databases, `op_db` and `module_db`: every sample on the CPU, compiled by"
        yield "Foregrad under the policy `refuse` against eager. Compared are values, dtypes, strides, flags, aliasing,"
        yield "versions, what was written, and gradients. Written by `make conformance`."
        if restriction:
            yield f"This run was restricted by `{restriction}`."
        yield ""
        sets = collections.Counter(database for database, _ in self._names)
        yield f"{sets['operators']} operators, {sets['modules']} modules. {self.line()}."
        yield ""
        yield "| set | dtype | variant | " + " | ".join(KINDS) + " |"
        yield "|---|---|---|" + "---|" * len(KINDS)
        for (database, dtype, variant), kinds in sorted(self.counts.items()):
            yield f"| {database} | {dtype} | {variant} | " + " | ".join(str(kinds[kind]) for kind in KINDS) + " |"
        yield ""
        yield "Skipped: eager throws. Operators whose results are uninitialised (`empty`) are compared by shape, strides and"
        yield "dtype; gradients without their strides."
        for kind, title in (("crashed", "Crashes"), ("differs", "Differences"), ("refused", "Refused")):
            yield from self._groups(kind, title)
        yield from self._last_resort()

    def _groups(self, kind, title):
        groups = collections.defaultdict(list)
        for outcome in self.failing:
            if outcome.kind == kind:
                groups[group_of(outcome.reason)].append(outcome)
        yield ""
        yield f"## {title}"
        yield ""
        if not groups:
            yield "None."
            return
        yield "| samples | reason | operators |"
        yield "|---|---|---|"
        for reason, outcomes in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
            ops = sorted({outcome.op for outcome in outcomes})
            shown = ", ".join(f"`{op}`" for op in ops[:12]) + (f" and {len(ops) - 12} more" if len(ops) > 12 else "")
            yield f"| {len(outcomes)} | {reason.replace('|', chr(92) + '|')} | {shown} |"

    def _last_resort(self):
        yield ""
        yield "## Shapes found by running the real kernel"
        yield ""
        if not self.last_resort:
            yield "None."
            return
        yield "| operator | times | in samples of |"
        yield "|---|---|---|"
        for op, count in sorted(self.last_resort.items(), key=lambda item: (-item[1], item[0])):
            users = sorted(self.last_resort_in[op])
            yield f"| `{op}` | {count} | {', '.join(f'`{user}`' for user in users[:8])} |"


def _order(outcome):
    return outcome.op, outcome.dtype, outcome.variant, outcome.sample
