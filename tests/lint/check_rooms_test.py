#!/usr/bin/env python3
"""scripts/check_rooms.py against right and wrong trees."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE_DIR = pathlib.Path(os.environ.get("FOREGRAD_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

RIGHT = {
    "CMakeLists.txt": "# foregrad_room(comment)\nforegrad_room(graph)\nforegrad_room(ops DEPENDS graph)\n"
    "foregrad_room(capture DEPENDS graph ops)\nforegrad_room(codegen DEPENDS graph ops)\n"
    "foregrad_room(api DEPENDS graph ops capture)\n",
    "src/graph/README.md": "",
    "src/graph/graph.h": "#pragma once\n#include <vector>\n",
    "src/graph/graph.cc": '#include "graph/graph.h"\n// DispatchKey in a comment, "ops/table.h" too\n'
    'const char* kText = "DispatchKey";\n// #include "ops/table.h"\n',
    "src/ops/README.md": "",
    "src/ops/table.h": "#pragma once\n#include \"graph/graph.h\"\n",
    "src/ops/schema.cc": "auto composite = c10::DispatchKey::CompositeImplicitAutograd;  // on the list of exceptions\n",
    "tests/ops/schema_test.cc": "",
    "src/ops/memory_variant.cc": "auto all = c10::DispatchKey::CompositeExplicitAutograd;  // on the list too\n",
    "tests/ops/memory_variant_test.cc": "",
    "src/ops/constant.cc": "auto all = c10::DispatchKey::CompositeExplicitAutograd;\n",
    "tests/ops/constant_test.cc": "",
    "src/ops/functional_variant.cc": "auto all = c10::DispatchKey::CompositeExplicitAutograd;\n",
    "tests/ops/functional_variant_test.cc": "",
    "src/graph/below_autograd.h": "#pragma once\nc10::impl::ExcludeDispatchKeyGuard guard;  // so is this one\n",
    "src/capture/README.md": "",
    "src/capture/keys.h": "#pragma once\n#include <c10/core/DispatchKey.h>\nusing c10::DispatchKey;\n",
    "src/codegen/llvm/jit.h": "#pragma once\n#include <llvm/IR/IRBuilder.h>\n",
    "src/api/compile.h": "#pragma once\n#include <foregrad/compile.h>\n#include <torch/torch.h>\n",
    "include/foregrad/compile.h": "#pragma once\n",
    "cli/main.cc": "int main() {}\n",
    "tests/graph/graph_test.cc": '#include "graph/graph.h"\n',
}


def run_on(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            if text is None:
                continue
            target = pathlib.Path(root, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        result = subprocess.run(
            [sys.executable, SOURCE_DIR / "scripts/check_rooms.py", root], capture_output=True, text=True
        )
        return result.returncode, result.stdout + result.stderr


class CheckRooms(unittest.TestCase):
    def expect(self, changes, message, status=1):
        code, output = run_on({**RIGHT, **changes})
        self.assertEqual(code, status, output)
        self.assertIn(message, output)

    def test_right_tree_is_clean(self):
        code, output = run_on(RIGHT)
        self.assertEqual((code, output), (0, ""))

    def test_include_of_a_room_above(self):
        self.expect({"src/graph/graph.h": '#pragma once\n#include "ops/table.h"\n'},
                    "src/graph/graph.h:2: error: `graph/` may not include `ops/`: it may include no other room")

    def test_include_of_a_room_above_in_angle_brackets(self):
        self.expect({"src/ops/table.h": "#pragma once\n# include <capture/keys.h>\n"},
                    "`ops/` may not include `capture/`: it may include `graph/`")

    def test_include_that_is_not_there(self):
        self.expect({"src/ops/table.h": '#pragma once\n#include "graph/no.h"\n'}, "`graph/no.h` is not there")

    def test_include_beside_the_file(self):
        self.expect({"src/ops/table.h": '#pragma once\n#include "row.h"\n'}, "is not below `src/`")

    def test_public_header_in_a_room(self):
        self.expect({"src/ops/table.h": "#pragma once\n#include <foregrad/compile.h>\n"}, "only `api/` may")

    def test_llvm_outside_its_folder(self):
        self.expect({"src/codegen/loop.h": "#pragma once\n#include <llvm/IR/Module.h>\n"},
                    "only `codegen/llvm/` may include LLVM")

    def test_umbrella_header(self):
        self.expect({"src/ops/table.h": "#pragma once\n#include <torch/torch.h>\n"}, "umbrella")

    def test_dispatch_key_outside_capture(self):
        self.expect({"src/ops/table.h": "#pragma once\n\nauto k = c10::DispatchKey::CPU;\n"},
                    "src/ops/table.h:3: error: `DispatchKey`: only `capture/` knows dispatch keys")

    def test_dispatch_key_guard_outside_capture(self):
        self.expect({"cli/main.cc": "c10::impl::ExcludeDispatchKeyGuard guard(keys);\n"}, "ExcludeDispatchKeyGuard")

    def test_source_without_test(self):
        self.expect({"tests/graph/graph_test.cc": None},
                    "src/graph/graph.cc:1: error: has no test: expected `tests/graph/graph_test.cc`")

    def test_tool_source_without_test(self):
        self.expect({"cli/idx.cc": ""}, "expected `tests/cli/idx_test.cc`")

    def test_unknown_room(self):
        self.expect({"src/utils/x.h": "#pragma once\n"}, "`utils` is not a room")

    def test_file_outside_a_room(self):
        self.expect({"src/x.h": "#pragma once\n"}, "is not a room")

    def test_room_without_readme(self):
        self.expect({"src/graph/README.md": None}, "has no README.md")

    def test_header_without_pragma(self):
        self.expect({"src/ops/table.h": ""}, "has no `#pragma once`")

    def test_long_file_is_an_error(self):
        self.expect({"src/ops/table.h": "#pragma once\n" * 801}, "801 lines: a file has at most 800")

    def test_longish_file_is_a_warning(self):
        self.expect({"src/ops/table.h": "#pragma once\n" * 501}, "warning: 501 lines", status=0)

    def test_no_table_of_rooms(self):
        self.expect({"CMakeLists.txt": ""}, "expected `foregrad_room(...)` lines")


if __name__ == "__main__":
    unittest.main()
