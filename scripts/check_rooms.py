#!/usr/bin/env python3
"""Holds the source tree against the rooms and the rules of its files.

    check_rooms.py [ROOT]

The rooms and what each may include are the `foregrad_room(...)` lines of CMakeLists.txt. Checked are
includes, dispatch keys, a test for each source, a README for each room, and lengths. Prints one line a
finding; the exit status is 1 if one of them is an error.
"""

import pathlib
import re
import sys
from dataclasses import dataclass

WARN_LINES = 500
MAX_LINES = 800
MAX_PUBLIC_HEADER_LINES = 150

# Files that hold a table of data, which no length limit fits: path, why.
TABLES_OF_DATA: dict[str, str] = {}

# Files outside capture/ that may name dispatch keys: path, why.
DISPATCH_KEY_USERS: dict[str, str] = {
    "src/ops/memory_variant.cc": "defines operators, whose kernel is for all devices",
    "src/ops/constant.cc": "defines an operator, whose kernel is for all devices",
    "src/ops/functional_variant.cc": "defines operators, whose kernel is for all devices",
    "src/graph/below_autograd.h": "keeps compiled graphs below autograd and autocast",
    "src/ops/schema.cc": "asks only whether an operator is composite, which its schema does not tell",
}

# Sources that no test mirrors by name: path, why.
UNMIRRORED = {
    "cli/main.cc": "only main(); tests/cli/ runs the program",
}

# 6 to 14 s of compile time each: rooms name the headers they need. api/ implements the public headers,
# which are written against libtorch as its users write it.
UMBRELLA_HEADERS = {"torch/torch.h", "torch/all.h", "torch/extension.h", "ATen/ATen.h"}
UMBRELLA_ROOMS = {"api"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
ROOM = re.compile(r"^\s*foregrad_room\(\s*(\w+)(?:\s+DEPENDS\s+([\w\s]+))?\)", re.MULTILINE)
DISPATCH_KEY = re.compile(r"\bDispatchKey|\w+DispatchKey\w*|\bTORCH_LIBRARY_IMPL\b")
COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\\ ]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"', re.DOTALL
)


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    is_error: bool
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {'error' if self.is_error else 'warning'}: {self.text}"


def blank(text):
    """The text with comments and strings blanked, each line where it was; includes stay."""

    def blanked(match):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if match[0].startswith('"') and re.match(r"\s*#\s*include\s*$", line):
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    return COMMENT_OR_STRING.sub(blanked, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def read_rooms(root):
    text = re.sub(r"#[^\n]*", "", (root / "CMakeLists.txt").read_text())
    rooms = {m[1]: set((m[2] or "").split()) for m in ROOM.finditer(text)}
    if not rooms:
        sys.exit(f"check_rooms: error: {root}/CMakeLists.txt: expected `foregrad_room(...)` lines, got none")
    return rooms


def sources_below(root, *folders):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".cc", ".h"} and path.is_file():
                yield path.relative_to(root).as_posix(), path.read_text()


def check_include(path, room, rooms, root, target, quoted):
    """What is wrong with one include, or None."""
    if target in UMBRELLA_HEADERS and room not in UMBRELLA_ROOMS:
        return f"`{target}` is an umbrella header: include the headers that are needed"
    if target.startswith("foregrad/"):
        return None if room == "api" else f"`{room}/` may not include public headers, only `api/` may"
    if target.startswith(("llvm/", "llvm-c/")):
        return None if path.startswith("src/codegen/llvm/") else "only `codegen/llvm/` may include LLVM"
    owner = target.split("/")[0]
    if owner in rooms and "/" in target:
        if owner != room and owner not in rooms[room]:
            allowed = ", ".join(f"`{r}/`" for r in sorted(rooms[room])) or "no other room"
            return f"`{room}/` may not include `{owner}/`: it may include {allowed}"
        if not (root / "src" / target).is_file():
            return f"`{target}` is not there"
        return None
    if quoted:
        return f'`"{target}"` is not below `src/`: write `"room/file.h"`, or `<…>` for a library'
    return None


def check_source(root, rooms, path, text):
    room = path.split("/")[1]
    if room not in rooms or path.count("/") < 2:
        yield Finding(path, 1, True, f"`{room}` is not a room of CMakeLists.txt")
        return
    code = blank(text)
    for match in INCLUDE.finditer(code):
        problem = check_include(path, room, rooms, root, match[2], match[1] == '"')
        if problem:
            yield Finding(path, line_of(code, match.start(1)), True, problem)


def check_dispatch_keys(path, text):
    if path.startswith("src/capture/") or path in DISPATCH_KEY_USERS:
        return
    code = blank(text)
    for match in DISPATCH_KEY.finditer(code):
        yield Finding(path, line_of(code, match.start()), True,
                      f"`{match[0]}`: only `capture/` knows dispatch keys")


def check_mirror(root, path):
    """src/x/y.cc has tests/x/y_test.cc, cli/y.cc has tests/cli/y_test.cc."""
    if not path.endswith(".cc") or path in UNMIRRORED:
        return
    test = "tests/" + path.removeprefix("src/").removesuffix(".cc") + "_test.cc"
    if not (root / test).is_file():
        yield Finding(path, 1, True, f"has no test: expected `{test}`")


def check_length(path, text):
    lines = text.count("\n")
    if path in TABLES_OF_DATA:
        return
    if path.startswith("include/") and lines > MAX_PUBLIC_HEADER_LINES:
        yield Finding(path, lines, False, f"{lines} lines: a public header has at most {MAX_PUBLIC_HEADER_LINES}")
    if lines > MAX_LINES:
        yield Finding(path, lines, True, f"{lines} lines: a file has at most {MAX_LINES}")
    elif lines > WARN_LINES:
        yield Finding(path, lines, False, f"{lines} lines: more than {WARN_LINES} need a reason")


def check_header(path, text):
    if path.endswith(".h") and not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield Finding(path, 1, True, "has no `#pragma once`")


def check_readmes(root, rooms):
    for room in rooms:
        folder = root / "src" / room
        if any(folder.rglob("*.cc")) and not (folder / "README.md").is_file():
            yield Finding(f"src/{room}", 1, True, "has no README.md: what it owns, what flows in, what flows out")


def check(root):
    rooms = read_rooms(root)
    for path, text in sources_below(root, "src"):
        yield from check_source(root, rooms, path, text)
    for path, text in sources_below(root, "src", "cli"):
        yield from check_mirror(root, path)
    for path, text in sources_below(root, "src", "include", "cli", "bench", "examples"):
        yield from check_dispatch_keys(path, text)
    for path, text in sources_below(root, "src", "include", "cli", "bench", "examples", "tests"):
        yield from check_length(path, text)
        yield from check_header(path, text)
    yield from check_readmes(root, rooms)
    exempt = [*TABLES_OF_DATA, *DISPATCH_KEY_USERS]
    for path in exempt:
        if (root / "src").is_dir() and not (root / path).is_file():
            yield Finding("scripts/check_rooms.py", 1, True, f"names `{path}`, which is not there")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    findings = list(check(root))
    for finding in findings:
        print(finding)
    errors = sum(f.is_error for f in findings)
    if errors:
        sys.exit(f"check_rooms: {errors} errors")


if __name__ == "__main__":
    main()
