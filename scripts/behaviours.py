#!/usr/bin/env python3
"""Writes docs/behaviours.md from the tests in tests/behaviours/.

    behaviours.py [ROOT]           writes the page
    behaviours.py --check [ROOT]   says whether the page is as it would be written

Each `TEST(Behaviours, B001_Name)` has a comment above it that says the behaviour in a sentence. How it
ends is what the test's body calls: `expect_as_eager`, `expect_refused` or `expect_error` with a part of the
message, a function of the same file that calls one of them, or only `EXPECT_…`. A file's first comment is the heading of its rows.
"""

import pathlib
import re
import sys
from dataclasses import dataclass

PAGE = "docs/behaviours.md"
HEAD = """# Behaviours

What a compiled call does where arguments are written, share memory or change their shape, and where results do. *As
eager* means: everything a caller can see is as after the eager call (values bit for bit, layout, flags, versions, which
tensors are one object or share a storage, gradients, errors, the generator's place), and no call ran eagerly. *Refused*
means: the call runs eagerly, or throws under `Policy::Refuse`, with a message that contains the words. *As said* means:
the test holds what the row says by itself.

Written by `scripts/behaviours.py` from `tests/behaviours/`, one test or more a row; do not edit by hand.
"""

TEST = re.compile(r"((?:^//[^\n]*\n)*)^TEST\(Behaviours, (B\d{3})_(\w+)\) \{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
FUNCTION = re.compile(r"^\w[\w:<>&* ]* (\w+)\([^;{}]*\) \{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
REFUSED = re.compile(r"\bexpect_refused\(")
MESSAGE = re.compile(r'[(,]\s*"((?:[^"\\]|\\.)*)"\s*[,)]')
ERRORS = re.compile(r"\bexpect_error\(")
ERROR = re.compile(r'HasSubstr\("((?:[^"\\]|\\.)*)"\)')


@dataclass(frozen=True)
class Behaviour:
    id: str
    text: str
    end: str


def fail(path, text):
    sys.exit(f"behaviours: error: {path}: {text}")


def words_of(comment):
    return " ".join(line.removeprefix("//").strip() for line in comment.strip().splitlines())


def called_text(body, start):
    """The text of a call from its opening parenthesis to the closing one."""
    depth = 0
    for end in range(start, len(body)):
        depth += {"(": 1, ")": -1}.get(body[end], 0)
        if depth == 0:
            return body[start : end + 1]
    return body[start:]


def end_of(path, name, body, as_eager):
    def messages_of(calls):
        messages = []
        for match in calls.finditer(body):
            found = MESSAGE.findall(called_text(body, match.end() - 1))
            if not found:
                fail(path, f"`{name}`: expected a part of the message in `{match[0]}…)`, got none")
            if found[-1] not in messages:
                messages.append(found[-1])
        return messages

    ends = ["as eager"] if re.search(rf"\b({'|'.join(sorted(as_eager))})\(", body) else []
    ends += [f"refused: “{message}”" for message in messages_of(REFUSED)]
    ends += [f"an error: “{message}”" for message in messages_of(ERRORS)]
    if not ends and "EXPECT_THROW" in body:
        ends = [f"an error: “{message}”" for message in ERROR.findall(body)[:1]]
    if not ends and re.search(r"\bEXPECT_(EQ|TRUE)\(", body):
        ends = ["as said"]
    if not ends:
        fail(path, f"`{name}`: expected `expect_as_eager` or `expect_refused`, got neither")
    return "; ".join(ends)


def behaviours_of(path, text):
    as_eager = {"expect_as_eager", "expect_backward_as_eager"}
    for name, body in FUNCTION.findall(text):
        if re.search(rf"\b({'|'.join(sorted(as_eager))})\(", body):
            as_eager.add(name)
    for comment, row, name, body in TEST.findall(text):
        if not comment:
            fail(path, f"`{row}_{name}`: expected a comment above it that says the behaviour, got none")
        yield Behaviour(row, words_of(comment), end_of(path, f"{row}_{name}", body, as_eager))


def page(root):
    sections = []
    for path in sorted((root / "tests/behaviours").glob("*_test.cc")):
        text = path.read_text()
        rows = sorted(behaviours_of(path, text), key=lambda behaviour: behaviour.id)
        if not rows:
            fail(path, "expected `TEST(Behaviours, B…)`, got none")
        heading = words_of(re.match(r"(?://[^\n]*\n)*", text)[0]).rstrip(".")
        sections.append((rows[0].id, heading, rows))
    if not sections:
        fail(root / "tests/behaviours", "expected tests, got none")
    text = HEAD
    for _, heading, rows in sorted(sections, key=lambda section: section[0]):
        text += f"\n## {heading}\n\n| | behaviour | ends |\n|---|---|---|\n"
        text += "".join(f"| {row.id} | {row.text} | {row.end} |\n" for row in rows)
    return text


def main():
    arguments = sys.argv[1:]
    check = arguments[:1] == ["--check"]
    root = pathlib.Path((arguments[check:] or [pathlib.Path(__file__).parent.parent])[0])
    text = page(root)
    target = root / PAGE
    if not check:
        target.write_text(text)
    elif not target.is_file() or target.read_text() != text:
        sys.exit(f"behaviours: error: {target} is not what the tests say: run `scripts/behaviours.py`")


if __name__ == "__main__":
    main()
