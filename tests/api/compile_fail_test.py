#!/usr/bin/env python3
"""What the compiler says of a wrong use is our own sentence, not a page of templates alone."""

import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

SOURCE_DIR = pathlib.Path(os.environ.get("FOREGRAD_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
TORCH = pathlib.Path(os.environ["FOREGRAD_TORCH_PREFIX"])
CXX = os.environ.get("FOREGRAD_CXX", "c++")

# Precompiled once: they take seconds.
HEADERS = """
#include <foregrad/compile.h>
#include <torch/nn/modules/linear.h>
"""

PROGRAM = """
struct Opaque { at::Tensor inside; };
struct Listed { at::Tensor inside; auto members() { return std::tie(inside); } };

at::Tensor product(const at::Tensor& x, const at::Tensor& y);
at::Tensor of_opaque(const Opaque& x);
Opaque to_opaque(const at::Tensor& x);
Listed of_listed(const std::vector<Listed>& x, std::optional<double> y);

void use(const at::Tensor& x, const torch::nn::Linear& net) {
#if defined(RIGHT)
  foregrad::compile(product)(x, x);
  foregrad::compile(of_listed)(std::vector<Listed>(), std::optional<double>(1.0));
  foregrad::compile(net)(x);
#elif defined(TOO_FEW_ARGUMENTS)
  foregrad::compile(product)(x);
#elif defined(TOO_MANY_ARGUMENTS)
  foregrad::compile(product)(x, x, x);
#elif defined(WRONG_TYPE)
  foregrad::compile(product)(x, "text");
#elif defined(WRONG_TYPE_FOR_A_MODULE)
  foregrad::compile(net)("text");
#elif defined(OPAQUE_ARGUMENT)
  foregrad::compile(of_opaque)(Opaque{x});
#elif defined(OPAQUE_RESULT)
  foregrad::compile(to_opaque)(x);
#endif
}
"""

WRONG_CALL = "foregrad: the compiled function can't be called with arguments of these types and number."


class CompileFail(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.headers = pathlib.Path(cls.folder.name, "headers.h")
        cls.headers.write_text(HEADERS)
        result = cls.run_compiler("-x", "c++-header", cls.headers, "-o", f"{cls.headers}.gch")
        assert result.returncode == 0, result.stderr

    @staticmethod
    def run_compiler(*arguments, text=""):
        command = [*shlex.split(CXX), "-std=c++20", f"-I{SOURCE_DIR}/include", "-isystem", TORCH / "include",
                   "-isystem", TORCH / "include/torch/csrc/api/include", *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    def errors_of(self, case):
        """What the compiler says of one case; empty if it takes the program."""
        result = self.run_compiler("-fsyntax-only", "-include", self.headers, "-x", "c++", "-",
                                   text=f"#define {case}\n{PROGRAM}")
        return "" if result.returncode == 0 else result.stderr

    def expect(self, case, message):
        errors = self.errors_of(case)
        first = next((line for line in errors.splitlines() if "error:" in line), errors)
        self.assertIn(message, first, f"expected as the first error; all of them:\n{errors[:4000]}")

    def test_right_calls_are_taken(self):
        self.assertEqual(self.errors_of("RIGHT"), "")

    def test_too_few_arguments(self):
        self.expect("TOO_FEW_ARGUMENTS", WRONG_CALL)

    def test_too_many_arguments(self):
        self.expect("TOO_MANY_ARGUMENTS", WRONG_CALL)

    def test_wrong_type(self):
        self.expect("WRONG_TYPE", WRONG_CALL)

    def test_wrong_type_for_a_module(self):
        self.expect("WRONG_TYPE_FOR_A_MODULE", WRONG_CALL)

    def test_argument_that_cannot_be_walked(self):
        self.expect("OPAQUE_ARGUMENT", "foregrad: an argument is of a type that can't be walked for tensors.")

    def test_result_that_cannot_be_walked(self):
        self.expect("OPAQUE_RESULT", "foregrad: the function's result is of a type that can't be walked for tensors.")


if __name__ == "__main__":
    unittest.main()
