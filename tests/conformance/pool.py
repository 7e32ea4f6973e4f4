"""Child processes, one for each operator at a time, that may die."""

import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from multiprocessing.connection import wait

_CONTEXT = multiprocessing.get_context("fork")


def run(tasks, work, jobs, limit_s, on_done):
    """Runs `work(task, first, write)` for each task in a child of its own, `jobs` at a time. `write` hands a
    JSON-able record to `on_done(task, records, crash)`. A child that dies, or is silent for `limit_s`, is followed by
    another that starts behind the last record: `crash` says what happened, in words; it comes for each such child."""
    waiting = [(task, 0) for task in reversed(tasks)]
    running = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            task, first = waiting.pop()
            child = _Child(task, first, work)
            running[child.process.sentinel] = child
        wait(list(running), timeout=1.0)
        for sentinel, child in list(running.items()):
            crash = child.crash(limit_s)
            if crash is None:
                continue
            del running[sentinel]
            records, started = child.finish()
            on_done(child.task, records, crash)
            if crash:
                waiting.append((child.task, started + 1))


class _Child:
    def __init__(self, task, first, work):
        self.task = task
        self._first = first
        handle, self._path = tempfile.mkstemp(prefix="conformance-")
        os.close(handle)
        self.process = _CONTEXT.Process(target=_work, args=(work, task, first, self._path))
        self.process.start()
        self._last_size = -1
        self._last_change = time.monotonic()

    def crash(self, limit_s):
        """None while it runs; empty when it ended well; else what happened."""
        if not self.process.is_alive():
            code = self.process.exitcode
            if code == 0:
                return ""
            return f"the process died of {signal.Signals(-code).name}" if code < 0 else f"the process ended with {code}"
        size = os.path.getsize(self._path)
        if size != self._last_size:
            self._last_size, self._last_change = size, time.monotonic()
        if time.monotonic() - self._last_change < limit_s:
            return None
        self.process.kill()
        self.process.join()
        return f"it took longer than {limit_s} s"

    def finish(self):
        self.process.join()
        records, started = [], self._first
        with open(self._path) as file:
            for line in file:
                if line.startswith("#"):
                    started = int(line[1:])
                elif line.endswith("\n"):
                    records.append(json.loads(line))
        os.unlink(self._path)
        return records, started


def _work(work, task, first, path):
    with open(path, "w", buffering=1) as file:
        for number, record in work(task, first):
            # The number of what begins, then what became of it.
            print(f"#{number}" if record is None else json.dumps(record), file=file)
    sys.stdout.flush()
    os._exit(0)
