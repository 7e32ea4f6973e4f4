#!/usr/bin/env python3
"""scripts/behaviours.py on small trees, and docs/behaviours.md against the tests of this one."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE_DIR = pathlib.Path(os.environ.get("FOREGRAD_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

TESTS = """// What goes in.
#include "x.h"

void expect_for_both(const Program& program) {
  expect_as_eager(program);
}

// A view
// of an input.
TEST(Behaviours, B002_AView) {
  expect_for_both(view);
}

// A write.
TEST(Behaviours, B001_AWrite) {
  expect_as_eager([](const Tensors& in) { at::cat({}, "no message"); });
  expect_refused(
      [](const Tensors& in) { at::einsum("i,j", in); }, make,
      "is not \\"supported\\"", look_only);
}
"""


def run_on(tests, *arguments):
    with tempfile.TemporaryDirectory() as root:
        source = pathlib.Path(root, "tests/behaviours/inputs_test.cc")
        source.parent.mkdir(parents=True)
        source.write_text(tests)
        page = pathlib.Path(root, "docs/behaviours.md")
        page.parent.mkdir()
        result = subprocess.run(
            [sys.executable, SOURCE_DIR / "scripts/behaviours.py", *arguments, root], capture_output=True, text=True
        )
        return result.returncode, result.stderr, page.read_text() if page.is_file() else ""


class Behaviours(unittest.TestCase):
    def test_rows_are_sorted_and_say_how_they_end(self):
        status, _, page = run_on(TESTS)
        self.assertEqual(status, 0)
        self.assertIn(
            "## What goes in\n\n| | behaviour | ends |\n|---|---|---|\n"
            '| B001 | A write. | as eager; refused: “is not \\"supported\\"” |\n'
            "| B002 | A view of an input. | as eager |\n",
            page,
        )

    def test_what_is_missing_is_an_error(self):
        for wrong, message in {
            TESTS.replace("// A write.\n", ""): "expected a comment",
            TESTS.replace("expect_for_both(view)", "view()"): "got neither",
            TESTS.replace("TEST(Behaviours", "TEST(Others"): "got none",
        }.items():
            status, errors, _ = run_on(wrong)
            self.assertNotEqual(status, 0)
            self.assertIn(message, errors)

    def test_check_writes_nothing_and_fails_without_the_page(self):
        status, errors, page = run_on(TESTS, "--check")
        self.assertNotEqual(status, 0)
        self.assertIn("run `scripts/behaviours.py`", errors)
        self.assertEqual(page, "")

    def test_the_page_of_this_tree_is_up_to_date(self):
        result = subprocess.run(
            [sys.executable, SOURCE_DIR / "scripts/behaviours.py", "--check", SOURCE_DIR], capture_output=True, text=True
        )
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
