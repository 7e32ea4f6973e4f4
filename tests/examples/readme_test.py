#!/usr/bin/env python3
"""README.md's program is examples/quickstart.cc, and that program trains."""

import os
import pathlib
import re
import subprocess
import unittest

SOURCE_DIR = pathlib.Path(os.environ.get("FOREGRAD_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BINARY_DIR = pathlib.Path(os.environ.get("FOREGRAD_BINARY_DIR", SOURCE_DIR / "build/release"))


class Readme(unittest.TestCase):
    readme = (SOURCE_DIR / "README.md").read_text()

    def test_program_is_the_example(self):
        programs = re.findall(r"^```cpp\n(.*?)^```$", self.readme, re.DOTALL | re.MULTILINE)
        self.assertEqual(len(programs), 1, "README.md: expected one block of C++")
        self.assertEqual(programs[0], (SOURCE_DIR / "examples/quickstart.cc").read_text())

    def test_program_is_short(self):
        lines = (SOURCE_DIR / "examples/quickstart.cc").read_text().splitlines()
        self.assertLessEqual(len(lines), 25)

    def test_program_trains_and_nothing_runs_eagerly(self):
        program = BINARY_DIR / "bin/examples/quickstart"
        result = subprocess.run([program], capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        losses = [float(loss) for loss in re.findall(r"^step +\d+: loss ([\d.]+)$", result.stdout, re.MULTILINE)]
        self.assertEqual(len(losses), 6, result.stdout)
        self.assertLess(losses[-1], losses[0] / 20)
        self.assertIn("calls that ran eagerly: 0\n", result.stdout)
        self.assertEqual(result.stderr, "", "a warning in the first program that people run")

    def test_links_lead_somewhere(self):
        prose = re.sub(r"^```.*?^```$", "", self.readme, flags=re.DOTALL | re.MULTILINE)
        links = re.findall(r"\]\((?!https?:)([^)#]+)", prose)
        self.assertIn("docs/limits.md", links)
        for link in links:
            self.assertTrue((SOURCE_DIR / link).exists(), f"README.md links to `{link}`, which is not there")


if __name__ == "__main__":
    unittest.main()
