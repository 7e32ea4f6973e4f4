#!/usr/bin/env python3
"""examples/backend.cc: a backend in under 100 lines gets forward and backward, and gives eager's values."""

import os
import pathlib
import re
import subprocess
import unittest

SOURCE_DIR = pathlib.Path(os.environ.get("FOREGRAD_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BINARY_DIR = pathlib.Path(os.environ.get("FOREGRAD_BINARY_DIR", SOURCE_DIR / "build/release"))


class Backend(unittest.TestCase):
    def test_runs_forward_and_backward(self):
        program = BINARY_DIR / "bin/examples/backend"
        result = subprocess.run([program], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        calls = dict(re.findall(r"^(aten::\S+) +(\d+) ", result.stdout, re.MULTILINE))
        self.assertEqual(calls.get("aten::silu"), "10", result.stdout)
        self.assertEqual(calls.get("aten::silu_backward"), "10", result.stdout)
        self.assertIn("largest difference from eager: 0\n", result.stdout)
        self.assertIn("calls that ran eagerly: 0\n", result.stdout)
        self.assertEqual(result.stderr, "")

    def test_is_short(self):
        lines = (SOURCE_DIR / "examples/backend.cc").read_text().splitlines()
        self.assertLess(len(lines), 100)


if __name__ == "__main__":
    unittest.main()
