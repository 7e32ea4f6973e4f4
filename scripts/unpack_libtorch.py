#!/usr/bin/env python3
"""Unpacks from the pinned wheels what a C++ program for the CPU needs, after checking their hashes.

    unpack_libtorch.py REQUIREMENTS DOWNLOADS INTO

The CUDA and the Python parts of the wheels stay out: 0.5 GB instead of 1.3 GB.
"""

import hashlib
import pathlib
import re
import sys
import zipfile

# Of every wheel; licences included.
WANTED = re.compile(
    r"""torch/include/.*
      | torch/share/cmake/.*
      | torch/lib/lib(torch_cpu|c10)\.so
      | torch/lib/lib(gomp|gfortran)[-.].*
      | nvidia/[^/]+/lib/lib(cudart|cupti)\.so[.0-9]*
      | [^/]+\.dist-info/.*""",
    re.VERBOSE,
)


def fail(what, where, expected, got, to_do):
    sys.exit(
        f"setup: error: {what}\n  where:    {where}\n  expected: {expected}\n  got:      {got}\n  to do:    {to_do}"
    )


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def wheels_of(requirements, downloads):
    """Yields the wheel of each requirement, its hash checked."""
    pattern = re.compile(r"^([A-Za-z0-9-]+)==(\S+) --hash=sha256:([0-9a-f]{64})$")
    for line in requirements.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        match = pattern.match(line)
        if not match:
            fail("a line cannot be read", requirements, "`name==version --hash=sha256:…`", f"`{line}`", "correct it")
        name, version, expected = match.groups()
        found = sorted(downloads.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
        if len(found) != 1:
            fail("a wheel is missing", downloads, f"one `{name}` {version}", f"{len(found)}", "run `make setup` again")
        got = sha256_of(found[0])
        if got != expected:
            found[0].unlink()
            fail("a wheel is not the pinned one", found[0], expected, got,
                 "run `make setup` again: the file was removed and will be downloaded anew")
        yield found[0]


def unpack(wheel, into):
    with zipfile.ZipFile(wheel) as archive:
        members = [m for m in archive.infolist() if WANTED.fullmatch(m.filename) and not m.is_dir()]
        total = sum(m.file_size for m in members)
        print(f"setup: unpacking {len(members)} files, {total >> 20} MB, of {wheel.name}", flush=True)
        for member in members:
            path = archive.extract(member, into)
            if member.filename.endswith(".so") or ".so." in member.filename:
                pathlib.Path(path).chmod(0o755)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    requirements, downloads, into = map(pathlib.Path, sys.argv[1:])
    try:
        for wheel in wheels_of(requirements, downloads):
            unpack(wheel, into)
    except zipfile.BadZipFile as error:
        fail("a wheel cannot be read", downloads, "a zip file", error, "run `make setup` again")
    except OSError as error:
        fail("libtorch could not be unpacked", into, "a folder with 600 MB of space", error,
             "free some space, or set `FOREGRAD_CACHE` to a folder on another disk")


if __name__ == "__main__":
    main()
