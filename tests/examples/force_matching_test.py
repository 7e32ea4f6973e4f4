#!/usr/bin/env python3
"""examples/force_matching.cc learns the potential, and compiled equals eager."""

import os
import pathlib
import re
import subprocess
import unittest

SOURCE_DIR = pathlib.Path(os.environ.get("FOREGRAD_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BINARY_DIR = pathlib.Path(os.environ.get("FOREGRAD_BINARY_DIR", SOURCE_DIR / "build/release"))


class ForceMatching(unittest.TestCase):
    def test_learns_the_potential(self):
        program = BINARY_DIR / "bin/examples/force_matching"
        result = subprocess.run([program], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("compiled and eager loss are equal\n", result.stdout)
        rows = re.findall(r"^angle .*: energy +(-?[\d.]+), exactly +(-?[\d.]+)$", result.stdout, re.MULTILINE)
        self.assertEqual(len(rows), 7, result.stdout)
        for learned, exact in rows:
            self.assertAlmostEqual(float(learned), float(exact), delta=0.05)
        self.assertEqual(result.stderr, "")


if __name__ == "__main__":
    unittest.main()
