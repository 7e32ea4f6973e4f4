"""`make bench` runs to its end and prints both tables. What it measures is not held to anything."""

import os
import pathlib
import subprocess
import unittest

PROGRAM = pathlib.Path(os.environ["FOREGRAD_BINARY_DIR"]) / "bin" / "foregrad_bench"


class Bench(unittest.TestCase):
    def test_prints_a_line_for_each_benchmark_in_its_table(self):
        run = subprocess.run(
            [PROGRAM, "--benchmark_filter=compile/100/|forward_without_grad"],
            capture_output=True, text=True, timeout=500, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"(?m)^ +100 +\d+ +\d+\.\d\d ")
        self.assertRegex(run.stdout, r"(?m)^forward, grad mode off +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d$")


if __name__ == "__main__":
    unittest.main()
